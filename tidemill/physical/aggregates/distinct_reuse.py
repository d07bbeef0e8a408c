"""COUNT(DISTINCT v) by keys that have few known values: every v once, with a bit for each of them.

    SELECT k, COUNT(DISTINCT v) FROM t WHERE k IN ('A', 'B', 'other') GROUP BY k

A set of values for each key keeps a v that comes under three keys three times. Here an operator by v (and by
the other keys) keeps the keys under which it has come, a bit each, and hands on how many are new for each key
(``operators.shared_distinct``); an aggregation adds these up. Over input from which rows go, an aggregation
by v counts how many rows it has under each key, and the other one the keys under which there are any.
Cost beside the plain way: an exchange of what is new, by key.

``known_keys`` finds the values. Of GROUPING SETS every set has bits of its own, and rows need not be
expanded. The result of each epoch is the same; changes within one are not, so it is for bundles only.
Of windows (``shared_window``) an aggregation by window does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction
from tidemill.physical.finish import PENDING, exchange, finish
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


def shared(node: p.GroupAggregate) -> p.GroupAggregate:
    """``node`` as it runs: the two operators where the keys share their state, else the plain one."""
    if node.reuse is None:
        return node
    plain = replace(node, reuse=None)
    if not insert_only(node.input):
        # Not done unasked: how many rows a value has under a key takes as much as a value.
        return _counted(plain, node.reuse, _flagged(node, node.reuse)) if node.reuse.forced else plain
    reuse = with_width(node.reuse, node.source, node.keys)
    return plain if reuse is None else _growing(plain, reuse)


def unshared(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` without what ``shared`` made of it: the operators below it fold the changes of an epoch."""
    alone = node.alone if isinstance(node, p.GroupAggregate) else None
    return alone or node


def shared_part(node: p.GroupAggregate) -> p.PhysicalNode:
    """The lower one of the operators of ``shared``, which keeps the values."""
    below = node.source
    return below if isinstance(below, p.SharedDistinct) else below.inputs[0].inputs[0]


def shared_reads(node: p.GroupAggregate) -> p.PhysicalNode:
    """What the operators of ``shared`` read."""
    below = shared_part(node)
    if isinstance(below, p.SharedDistinct):
        return below.input.inputs[0]
    assert isinstance(below, p.GroupAggregate)
    return below.source.inputs[0]


def with_width(
    reuse: p.DistinctReuse, child: p.PhysicalNode, keys: tuple[int, ...]
) -> p.DistinctReuse | None:
    """``reuse`` with words of as many bits as there are keys, or of so few that an entry is hardly larger
    than one of the plain state; None where even the least is. A value that comes under few keys has few
    entries then, so that nobody needs to know how many have values in common."""
    below = child.inputs[0] if reuse.expanded else child
    value = _HASH + sum(_width(below.fields[column].type) for column in reuse.kept)
    kinds = [child.fields[keys[place]].type for place in reuse.places]
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


def _average(reuse: p.DistinctReuse, place: int, kind: t.LogicalType) -> float:
    if not isinstance(kind, t.VarCharType):
        return _width(kind)
    values = {combination.values[place] for combination in reuse.combinations}
    return _LENGTH + sum(len(str(v).encode()) for v in values if v is not None) / len(values)


def _growing(plain: p.GroupAggregate, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """The numbers of what is new for each key, added up."""
    keys = tuple(plain.input.fields[k] for k in plain.keys)
    number = t.Field(free_name("$new", [f.name for f in keys]), t.BigIntType(nullable=False))
    below = exchange(_below(plain, reuse), reuse.kept)
    part = finish(p.SharedDistinct(fields=(*keys, number), traits=PENDING, input=below, shared=reuse))
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
            traits=PENDING,
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
    """What the lower aggregation reads: the rows once, not once for each of GROUPING SETS."""
    return node.source.inputs[0] if reuse.expanded else node.source


def _flagged(plain: p.GroupAggregate, reuse: p.DistinctReuse) -> p.GroupAggregate:
    """By the other keys and the value: how many rows it has under each combination."""
    child = _below(plain, reuse)
    fields = [child.fields[c] for c in reuse.kept]
    refs: list[Expr] = [InputRef(type=child.fields[c].type, index=c) for c in reuse.kept]
    flags = [_is_of(combination, child) for combination in reuse.combinations]
    calc = finish(
        p.Calc(
            fields=(*fields, *(t.Field(f"$is{i}", x.type) for i, x in enumerate(flags))),
            traits=PENDING,
            input=child,
            projections=(*refs, *flags),
        )
    )
    keys = tuple(range(len(reuse.kept)))
    calls = tuple(_flag(i, len(keys)) for i in range(len(flags)))
    return finish(
        p.GroupAggregate(
            fields=(*fields, *(t.Field(c.name, c.type) for c in calls)),
            traits=PENDING,
            input=exchange(calc, keys),
            keys=keys,
            calls=calls,
            part=True,
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


def _flag(number: int, first: int) -> AggregateCall:
    """How many rows are there."""
    kind = t.BigIntType(nullable=False)
    return AggregateCall(function="COUNT", args=(), type=kind, name=f"$has{number}", filter=first + number)


def _counted(plain: p.GroupAggregate, reuse: p.DistinctReuse, flagged: p.GroupAggregate) -> p.GroupAggregate:
    """A row for each combination that a value has, counted."""
    keys = tuple(range(len(plain.keys)))
    value = flagged.fields[len(reuse.kept) - 1]
    seen = t.Field("$seen", flagged.fields[-1].type)
    fields = (*(plain.input.fields[k] for k in plain.keys), value)
    rows = tuple(_row(plain, reuse, flagged, i) for i in range(len(reuse.combinations)))
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
    calls = tuple(replace(c, args=(len(keys),), distinct=False) for c in plain.calls)
    return _adding(plain, reuse, calc, calls)


def _is_there(seen: InputRef) -> Expr:
    nothing = Literal(type=seen.type, value=0)
    return Call(type=t.BooleanType(nullable=False), function=">", args=(seen, nothing))


def _row(
    plain: p.GroupAggregate, reuse: p.DistinctReuse, flagged: p.GroupAggregate, number: int
) -> tuple[Expr, ...]:
    """The keys of a combination, the value, and its flag."""
    constants = dict(zip(reuse.places, reuse.combinations[number].values, strict=True))
    columns: Sequence[int] = range(len(flagged.fields))
    rest = iter(columns)
    found: list[Expr] = []
    for place, key in enumerate(plain.keys):
        kind = plain.input.fields[key].type
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
