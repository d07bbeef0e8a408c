"""COUNT(DISTINCT v) by keys that have few known values: every v once, with a flag for each of them.

    SELECT k, COUNT(DISTINCT v) FROM t WHERE k IN ('A', 'B', 'other') GROUP BY k

A set of values for each key keeps a v that comes under three keys three times. Here one aggregation by v
(and by the other keys) says under which keys it has come: a byte each. A second counts, for each key, the v
that came under it. Both are ordinary aggregations: over input that only grows the flags are MAX(1) FILTER
(key), else they are counts. Cost beside the plain way: an exchange of what is new, by key.

The keys' values are known by conditions on them (=, IN, OR of them) or as the branches of a CASE. The result
of each epoch is the same; changes within one are not, so it is for bundles only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import product

from tidemill.config.mini_batch_options import MINI_BATCH_ENABLED
from tidemill.config.optimizer_options import DISTINCT_STATE_REUSE
from tidemill.config.option import Configuration
from tidemill.connectors.filters import AllOf, AnyOf, ColumnFilter, Comparison
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction
from tidemill.physical.finish import PENDING, exchange, finish
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan import nodes as n
from tidemill.plan.column_filters import column_filters
from tidemill.plan.expressions import AggregateCall, Call, Cast, Expr, InputRef, Literal
from tidemill.plan.predicates import conjuncts
from tidemill.types import logical as t

PHASE = "REUSE"
MOST = 256
"""Combinations of the keys' values."""
_HASH, _FLAG, _LENGTH, _TEXT = 8.0, 1.125, 4.0, 8.0
_WORSE = 1.1
"""What AUTO accepts beside the plain state where no two keys have a value in common."""
_WIDTHS: dict[type[t.LogicalType], float] = {
    t.BooleanType: 0.125,
    t.TinyIntType: 1.0,
    t.SmallIntType: 2.0,
    t.IntType: 4.0,
    t.DateType: 4.0,
    t.FloatType: 4.0,
}
_WHOLE: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 8,
    t.SmallIntType: 16,
    t.IntType: 32,
    t.BigIntType: 64,
}
_KNOWN = (*_WHOLE, t.VarCharType, t.DateType, t.BooleanType)
_FLAG_TYPE = t.TinyIntType(nullable=True)
Values = tuple[object, ...]


def known_values(node: n.Aggregate, config: Configuration, state_ttl: int) -> p.DistinctReuse | None:
    """Which keys of ``node`` have known values, where its distinct state may be shared between them."""
    mode = config.read(DISTINCT_STATE_REUSE).upper()
    if mode == "OFF" or state_ttl or not config.read(MINI_BATCH_ENABLED) or not _counts_distinct(node):
        return None
    found = {place: _values(node.input, key) for place, key in enumerate(node.keys)}
    listed = {place: values for place, values in found.items() if values is not None}
    number = 1
    for values in listed.values():
        number *= len(values)
    if not 1 < number <= MOST:
        return None
    combinations = tuple(product(*listed.values()))
    return p.DistinctReuse(places=tuple(listed), combinations=combinations, forced=mode == "ON")


def _counts_distinct(node: n.Aggregate) -> bool:
    """Whether all calls count the distinct values of one column, none of the keys."""
    columns = {call.args for call in node.calls}
    plain = all(c.function == "COUNT" and c.distinct and c.filter is None for c in node.calls)
    return plain and len(columns) == 1 and all(len(x) == 1 and x[0] not in node.keys for x in columns)


@singledispatch
def _values(node: n.LogicalNode, column: int) -> Values | None:
    """What a column may have, each once, in the order of the query; None where that is not known."""
    return None


@_values.register
def _(node: n.Watermark, column: int) -> Values | None:
    return _values(node.input, column)


@_values.register
def _(node: n.Project, column: int) -> Values | None:
    found = node.expressions[column]
    if isinstance(found, InputRef):
        return _values(node.input, found.index)
    return _constants(found, node.fields[column].type)


@_values.register
def _(node: n.Filter, column: int) -> Values | None:
    kind = node.fields[column].type
    names = [str(i) for i in range(len(node.fields))]
    for condition in column_filters(conjuncts(node.condition), names):
        values = _listed(condition, str(column))
        if values is not None:
            return _fitting(values, kind)
    return _values(node.input, column)


def _listed(condition: ColumnFilter, column: str) -> Values | None:
    match condition:
        case Comparison(name, "=", value):
            return (value,) if name == column else None
        case AnyOf(parts):
            each = [_listed(part, column) for part in parts]
            known = [values for values in each if values is not None]
            return tuple(v for values in known for v in values) if len(known) == len(each) else None
        case AllOf(parts):
            return next((v for part in parts if (v := _listed(part, column)) is not None), None)
        case _:
            return None


def _constants(expression: Expr, kind: t.LogicalType) -> Values | None:
    """The results of a CASE of constants."""
    if not isinstance(expression, Call) or expression.function != "CASE":
        return None
    results = (*expression.args[1:-1:2], expression.args[-1])
    bare = [x.operand if isinstance(x, Cast) and x.implicit else x for x in results]
    if not all(isinstance(x, Literal) and x.value is not None for x in bare):
        return None
    return _fitting(tuple(x.value for x in bare if isinstance(x, Literal)), kind)


def _fitting(values: Values, kind: t.LogicalType) -> Values | None:
    """``values`` that a column of type ``kind`` can have, where their equality is Python's."""
    if not isinstance(kind, _KNOWN):
        return None
    bits = _WHOLE.get(type(kind))
    if bits is not None:
        values = tuple(v for v in values if isinstance(v, int) and -(1 << bits - 1) <= v < 1 << bits - 1)
    return tuple(dict.fromkeys(values))


def shared(node: p.GroupAggregate) -> p.GroupAggregate:
    """``node`` as it runs: the two aggregations where the keys share their state, else the plain one."""
    core = node.core
    if core is None or core.reuse is None:
        return node
    grows = insert_only(core.input)
    if not core.reuse.forced and not (grows and _pays(core, core.reuse)):
        return replace(node, core=replace(core, reuse=None))
    reuse = replace(core.reuse, grows=grows)
    return _counted(node, replace(core, reuse=reuse), reuse, _flagged(core, reuse))


def flags_below(node: p.GroupAggregate | p.GlobalGroupAggregate) -> p.GroupAggregate | p.GlobalGroupAggregate:
    """The lower one of the aggregations of ``shared``, which keeps the flags."""
    assert node.core is not None
    below = node.core.input.inputs[0].inputs[0]
    assert isinstance(below, p.GroupAggregate | p.GlobalGroupAggregate)
    return below


def flags_stand_on(node: p.GroupAggregate | p.GlobalGroupAggregate) -> p.PhysicalNode:
    """What the aggregations of ``shared`` read."""
    core = flags_below(node).core
    assert core is not None
    return core.input.inputs[0]


def _pays(core: p.AggregateCore, reuse: p.DistinctReuse) -> bool:
    """Whether the state of values that come under one key each is hardly larger than the plain one."""
    fields = core.input.fields
    value = _HASH + _width(fields[core.calls[0].args[0]].type)
    rest = sum(_width(fields[k].type) for i, k in enumerate(core.keys) if i not in reuse.places)
    texts = [_average(reuse, i, fields[core.keys[place]].type) for i, place in enumerate(reuse.places)]
    return value + rest + _FLAG * len(reuse.combinations) <= _WORSE * (value + rest + sum(texts))


def _width(kind: t.LogicalType) -> float:
    return _WIDTHS.get(type(kind), _TEXT)


def _average(reuse: p.DistinctReuse, place: int, kind: t.LogicalType) -> float:
    if not isinstance(kind, t.VarCharType):
        return _width(kind)
    values = {str(combination[place]) for combination in reuse.combinations}
    return _LENGTH + sum(len(v.encode()) for v in values) / len(values)


def _flagged(core: p.AggregateCore, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """By the other keys and the value: under which combinations it has come."""
    child = core.input
    kept = (*_rest(core, reuse), core.calls[0].args[0])
    fields = [child.fields[c] for c in kept]
    refs: list[Expr] = [InputRef(type=child.fields[c].type, index=c) for c in kept]
    one = t.TinyIntType(nullable=False)
    flags = list(_flags(core, reuse))
    calc = finish(
        p.Calc(
            fields=(
                *fields,
                t.Field("$one", one),
                *(t.Field(f"$is{i}", x.type) for i, x in enumerate(flags)),
            ),
            traits=PENDING,
            input=child,
            projections=(*refs, Literal(type=one, value=1), *flags),
        )
    )
    keys = tuple(range(len(kept)))
    calls = tuple(_flag(i, len(kept), grows=reuse.grows) for i in range(len(flags)))
    return finish(
        p.GroupAggregate(
            fields=(*fields, *(t.Field(c.name, c.type) for c in calls)),
            traits=PENDING,
            input=exchange(calc, keys),
            keys=keys,
            calls=calls,
            phase=PHASE,
            core=p.AggregateCore(input=calc, keys=keys, calls=calls),
        )
    )


def _rest(core: p.AggregateCore, reuse: p.DistinctReuse) -> tuple[int, ...]:
    return tuple(key for place, key in enumerate(core.keys) if place not in reuse.places)


def _flags(core: p.AggregateCore, reuse: p.DistinctReuse) -> Iterator[Expr]:
    """For each combination whether a row has it."""
    for combination in reuse.combinations:
        yield conjunction(
            _equal(core, place, value) for place, value in zip(reuse.places, combination, strict=True)
        ) or Literal(type=t.BOOLEAN, value=True)


def _equal(core: p.AggregateCore, place: int, value: object) -> Expr:
    kind = core.input.fields[core.keys[place]].type
    column = InputRef(type=kind, index=core.keys[place])
    constant = Literal(type=kind.with_nullable(False), value=value)
    return Call(type=t.BooleanType(nullable=kind.nullable), function="=", args=(column, constant))


def _flag(number: int, one: int, *, grows: bool) -> AggregateCall:
    """Of input that only grows that a row has come; else how many are there."""
    if grows:
        return AggregateCall(
            function="MAX", args=(one,), type=_FLAG_TYPE, name=f"$has{number}", filter=one + 1 + number
        )
    kind = t.BigIntType(nullable=False)
    return AggregateCall(function="COUNT", args=(), type=kind, name=f"$has{number}", filter=one + 1 + number)


def _counted(
    node: p.GroupAggregate, core: p.AggregateCore, reuse: p.DistinctReuse, flagged: p.GroupAggregate
) -> p.GroupAggregate:
    """A row for each combination that a value has, counted."""
    keys = tuple(range(len(core.keys)))
    value = flagged.fields[len(core.keys) - len(reuse.places)]
    seen = t.Field("$seen", flagged.fields[-1].type)
    fields = (*(core.input.fields[k] for k in core.keys), value)
    rows = tuple(_row(core, reuse, flagged, i) for i in range(len(reuse.combinations)))
    expand = finish(p.Expand(fields=(*fields, seen), traits=PENDING, input=flagged, projections=rows))
    refs = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))
    calc = finish(
        p.Calc(
            fields=fields,
            traits=PENDING,
            input=expand,
            projections=refs,
            condition=_is_there(InputRef(type=seen.type, index=len(fields))),
        )
    )
    calls = tuple(replace(c, args=(len(keys),), distinct=False) for c in core.calls)
    return finish(
        p.GroupAggregate(
            fields=node.fields,
            traits=PENDING,
            input=exchange(calc, keys),
            keys=keys,
            calls=calls,
            phase=PHASE,
            core=replace(core, input=calc, keys=keys, calls=calls),
        )
    )


def _is_there(seen: InputRef) -> Expr:
    plain = t.BooleanType(nullable=False)
    if seen.type.nullable:
        return Call(type=plain, function="IS NOT NULL", args=(seen,))
    return Call(type=plain, function=">", args=(seen, Literal(type=seen.type, value=0)))


def _row(
    core: p.AggregateCore, reuse: p.DistinctReuse, flagged: p.GroupAggregate, number: int
) -> tuple[Expr, ...]:
    """The keys of a combination, the value, and its flag."""
    constants = dict(zip(reuse.places, reuse.combinations[number], strict=True))
    columns: Sequence[int] = range(len(flagged.fields))
    rest = iter(columns)
    found: list[Expr] = []
    for place, key in enumerate(core.keys):
        kind = core.input.fields[key].type
        if place in constants:
            found.append(Literal(type=kind, value=constants[place]))
        else:
            found.append(InputRef(type=kind, index=next(rest)))
    value = next(rest)
    flag = len(flagged.fields) - len(reuse.combinations) + number
    return (
        *found,
        InputRef(type=flagged.fields[value].type, index=value),
        InputRef(type=flagged.fields[flag].type, index=flag),
    )
