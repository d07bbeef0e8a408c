"""COUNT(DISTINCT v) by keys with few known values: keeps each v once, with a bit per key.

    SELECT k, COUNT(DISTINCT v) FROM t WHERE k IN ('A', 'B', 'other') GROUP BY k

A set of values per key stores a v of three keys three times. Instead, a lower operator, keyed by v and the
other keys, stores a bit per key under which v has come (``operators.shared_distinct``). It sends the number
of new values per key, and an upper aggregation adds these numbers up. If the input retracts rows, the lower
operator counts the rows of v per key instead, and the upper one counts keys with rows. Extra cost: an
exchange of the new values by key.

``known_keys`` finds the values. Each of the GROUPING SETS has its own bits, so rows are not expanded. The
result of each epoch is the same, but the changes within an epoch are not, so only bundles use it.
``window_reuse`` does the same for windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction
from tidemill.physical.finish import exchange, finish
from tidemill.physical.names import free_name
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal
from tidemill.types import logical as t

_HASH, _WORD, _LENGTH, _TEXT = 8.0, 1.0, 4.0, 8.0
_WIDEST, _NARROWEST = 64, 8
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


def share_distinct(node: p.GroupAggregate) -> p.GroupAggregate:
    """The two operators for ``node`` if its keys share their state, otherwise ``node``."""
    if node.reuse is None:
        return node
    plain = replace(node, reuse=None)
    if not insert_only(node.input):
        # Only on request: the row count of a value and key is as large as a value.
        return _counted(plain, node.reuse, _flagged(node, node.reuse)) if node.reuse.forced else plain
    reuse = with_width(node.reuse, node.source, node.keys)
    return plain if reuse is None else _growing(plain, reuse)


def without_sharing(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` without ``share_distinct``, because the operators below it fold the changes of an epoch."""
    alone = node.alone if isinstance(node, p.GroupAggregate) else None
    return alone or node


def shared_values_node(node: p.GroupAggregate) -> p.PhysicalNode:
    """The lower operator of ``share_distinct``, which keeps the values."""
    below = node.source
    return below if isinstance(below, p.SharedDistinct) else below.inputs[0].inputs[0]


def shared_input(node: p.GroupAggregate) -> p.PhysicalNode:
    """The input of the operators of ``share_distinct``."""
    below = shared_values_node(node)
    if isinstance(below, p.SharedDistinct):
        return below.input.inputs[0]
    assert isinstance(below, p.GroupAggregate)
    return below.source.inputs[0]


def with_width(
    reuse: p.DistinctReuse, child: p.PhysicalNode, keys: tuple[int, ...]
) -> p.DistinctReuse | None:
    """``reuse`` with a word width: a bit per key, or fewer bits if an entry would be much larger than in the
    plain state. None if even the smallest word is too large. With narrow words a value of few keys has few
    entries, so the planner need not know how many keys share values."""
    below = child.inputs[0] if reuse.expanded else child
    value = _HASH + sum(_width(below.fields[column].type) for column in reuse.kept)
    kinds = [child.fields[keys[index]].type for index in reuse.places]
    plain = value + sum(_average(reuse, i, kind) for i, kind in enumerate(kinds))
    width = _NARROWEST
    while width < min(len(reuse.combinations), _WIDEST):
        width *= 2
    while width > _NARROWEST and _entry(value, reuse, width) > _WORSE * plain:
        width //= 2
    pays = _entry(value, reuse, width) <= _WORSE * plain
    return replace(reuse, width=width) if pays or reuse.forced else None


def _entry(value: float, reuse: p.DistinctReuse, width: int) -> float:
    return value + width / 8 + (_WORD if len(reuse.combinations) > width else 0)


def _width(kind: t.LogicalType) -> float:
    return _WIDTHS.get(type(kind), _TEXT)


def _average(reuse: p.DistinctReuse, index: int, kind: t.LogicalType) -> float:
    if not isinstance(kind, t.VarCharType):
        return _width(kind)
    values = {combination.values[index] for combination in reuse.combinations}
    return _LENGTH + sum(len(str(v).encode()) for v in values if v is not None) / len(values)


def _growing(plain: p.GroupAggregate, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """Adds up the numbers of new values per key."""
    keys = tuple(plain.input.fields[k] for k in plain.keys)
    number = t.Field(free_name("$new", [f.name for f in keys]), t.BigIntType(nullable=False))
    below = exchange(_below(plain, reuse), reuse.kept)
    part = finish(p.SharedDistinct(fields=(*keys, number), input=below, shared=reuse))
    calls = tuple(replace(c, function="$SUM0", args=(len(keys),), distinct=False) for c in plain.calls)
    return _adding(plain, reuse, part, calls)


def _adding(
    plain: p.GroupAggregate,
    reuse: p.DistinctReuse,
    below: p.PhysicalNode,
    calls: tuple[AggregateCall, ...],
) -> p.GroupAggregate:
    keys = tuple(range(len(plain.keys)))
    return finish(
        p.GroupAggregate(
            fields=plain.fields,
            input=exchange(below, keys),
            keys=keys,
            calls=calls,
            state_ttl=plain.state_ttl,
            reuse=reuse,
            alone=plain,
            part=True,
        )
    )


def _below(node: p.GroupAggregate, reuse: p.DistinctReuse) -> p.PhysicalNode:
    """The input of the lower aggregation: each row once, not once per grouping set."""
    return node.source.inputs[0] if reuse.expanded else node.source


def _flagged(plain: p.GroupAggregate, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """Counts the rows per combination of keys, grouped by the other keys and the value."""
    child = _below(plain, reuse)
    fields = [child.fields[c] for c in reuse.kept]
    refs: list[Expr] = [InputRef(type=child.fields[c].type, index=c) for c in reuse.kept]
    flags = [_is_of(combination, child) for combination in reuse.combinations]
    calc = finish(
        p.Calc(
            fields=(*fields, *(t.Field(f"$is{i}", x.type) for i, x in enumerate(flags))),
            input=child,
            projections=(*refs, *flags),
        )
    )
    keys = tuple(range(len(reuse.kept)))
    calls = tuple(_flag(i, len(keys)) for i in range(len(flags)))
    return finish(
        p.GroupAggregate(
            fields=(*fields, *(t.Field(c.name, c.type) for c in calls)),
            input=exchange(calc, keys),
            keys=keys,
            calls=calls,
            part=True,
        )
    )


def _is_of(combination: p.KnownKeys, child: p.PhysicalNode) -> Expr:
    """The condition for rows with the keys of ``combination``."""
    conditions = (_equal(child, column, value) for column, value in combination.conditions)
    return conjunction(conditions) or Literal(type=t.BOOLEAN, value=True)


def _equal(child: p.PhysicalNode, column: int, value: object) -> Expr:
    kind = child.fields[column].type
    constant = Literal(type=kind.with_nullable(False), value=value)
    reference = InputRef(type=kind, index=column)
    return Call(type=t.BooleanType(nullable=kind.nullable), function="=", args=(reference, constant))


def _flag(number: int, first: int) -> AggregateCall:
    """The call that counts the rows of combination ``number``."""
    kind = t.BigIntType(nullable=False)
    return AggregateCall(function="COUNT", args=(), type=kind, name=f"$has{number}", filter=first + number)


def _counted(plain: p.GroupAggregate, reuse: p.DistinctReuse, flagged: p.GroupAggregate) -> p.GroupAggregate:
    """Counts the values per combination: a row per combination that a value has."""
    keys = tuple(range(len(plain.keys)))
    value = flagged.fields[len(reuse.kept) - 1]
    flag_field = t.Field("$seen", flagged.fields[-1].type)
    fields = (*(plain.input.fields[k] for k in plain.keys), value)
    rows = tuple(_row(plain, reuse, flagged, i) for i in range(len(reuse.combinations)))
    expand = finish(p.Expand(fields=(*fields, flag_field), input=flagged, projections=rows))
    refs = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))
    calc = finish(
        p.Calc(
            fields=fields,
            input=expand,
            projections=refs,
            condition=_is_positive(InputRef(type=flag_field.type, index=len(fields))),
        )
    )
    calls = tuple(replace(c, args=(len(keys),), distinct=False) for c in plain.calls)
    return _adding(plain, reuse, calc, calls)


def _is_positive(flag: InputRef) -> Expr:
    nothing = Literal(type=flag.type, value=0)
    return Call(type=t.BooleanType(nullable=False), function=">", args=(flag, nothing))


def _row(
    plain: p.GroupAggregate, reuse: p.DistinctReuse, flagged: p.GroupAggregate, number: int
) -> tuple[Expr, ...]:
    """The keys of combination ``number``, the value, and the combination's flag."""
    constants = dict(zip(reuse.places, reuse.combinations[number].values, strict=True))
    columns: Sequence[int] = range(len(flagged.fields))
    other_columns = iter(columns)
    key_values: list[Expr] = []
    for index, key in enumerate(plain.keys):
        kind = plain.input.fields[key].type
        if index in constants:
            key_values.append(Literal(type=kind, value=constants[index]))
        else:
            key_values.append(InputRef(type=kind, index=next(other_columns)))
    value = next(other_columns)
    flag = len(flagged.fields) - len(reuse.combinations) + number
    return (
        *key_values,
        InputRef(type=flagged.fields[value].type, index=value),
        InputRef(type=flagged.fields[flag].type, index=flag),
    )
