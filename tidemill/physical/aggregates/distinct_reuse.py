"""COUNT(DISTINCT v) by keys that have few known values: every v once, with a flag for each of them.

    SELECT k, COUNT(DISTINCT v) FROM t WHERE k IN ('A', 'B', 'other') GROUP BY k

A set of values for each key keeps a v that comes under three keys three times. Here one aggregation by v
(and by the other keys) says under which keys it has come: a byte each. A second counts, for each key, the v
that came under it. Both are ordinary aggregations: over input that only grows the flags are MAX(1) FILTER
(key), else they are counts. Cost beside the plain way: an exchange of what is new, by key.

``known_keys`` finds the values. Of GROUPING SETS every set has flags of its own, and rows need not be
expanded. The result of each epoch is the same; changes within one are not, so it is for bundles only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction
from tidemill.physical.finish import PENDING, exchange, finish
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal
from tidemill.types import logical as t

PHASE = "REUSE"
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
_FLAG_TYPE = t.TinyIntType(nullable=True)


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
    """Whether the state is hardly larger than the plain one where values come under one key of a grouping."""
    fields = _below(core, reuse).fields
    value = _HASH + sum(_width(fields[column].type) for column in reuse.kept)
    kinds = [core.input.fields[core.keys[place]].type for place in reuse.places]
    keys = sum(_average(reuse, i, kind) for i, kind in enumerate(kinds))
    groupings = len({c.grouping for c in reuse.combinations})
    return value + _FLAG * len(reuse.combinations) <= _WORSE * groupings * (value + keys)


def _width(kind: t.LogicalType) -> float:
    return _WIDTHS.get(type(kind), _TEXT)


def _average(reuse: p.DistinctReuse, place: int, kind: t.LogicalType) -> float:
    if not isinstance(kind, t.VarCharType):
        return _width(kind)
    values = {combination.values[place] for combination in reuse.combinations}
    return _LENGTH + sum(len(str(v).encode()) for v in values if v is not None) / len(values)


def _below(core: p.AggregateCore, reuse: p.DistinctReuse) -> p.PhysicalNode:
    """What the lower aggregation reads: the rows once, not once for each of GROUPING SETS."""
    return core.input.inputs[0] if reuse.expanded else core.input


def _flagged(core: p.AggregateCore, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """By the other keys and the value: under which combinations it has come."""
    child = _below(core, reuse)
    fields = [child.fields[c] for c in reuse.kept]
    refs: list[Expr] = [InputRef(type=child.fields[c].type, index=c) for c in reuse.kept]
    one = t.TinyIntType(nullable=False)
    flags = [_is_of(combination, child) for combination in reuse.combinations]
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
    keys = tuple(range(len(reuse.kept)))
    calls = tuple(_flag(i, len(keys), grows=reuse.grows) for i in range(len(flags)))
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


def _is_of(combination: p.KnownKeys, child: p.PhysicalNode) -> Expr:
    """Whether a row has it."""
    conditions = (_equal(child, column, value) for column, value in combination.conditions)
    return conjunction(conditions) or Literal(type=t.BOOLEAN, value=True)


def _equal(child: p.PhysicalNode, column: int, value: object) -> Expr:
    kind = child.fields[column].type
    constant = Literal(type=kind.with_nullable(False), value=value)
    found = InputRef(type=kind, index=column)
    return Call(type=t.BooleanType(nullable=kind.nullable), function="=", args=(found, constant))


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
    value = flagged.fields[len(reuse.kept) - 1]
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
    constants = dict(zip(reuse.places, reuse.combinations[number].values, strict=True))
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
