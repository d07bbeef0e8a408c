"""UNION, INTERSECT and EXCEPT, with and without ALL, from unions, joins and aggregates.

INTERSECT is a semi join, EXCEPT an anti join, both by all columns with NULL equal to NULL, then made
distinct. The ALL variants count each row on both sides and replicate it as often as it must appear.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.planning import distinct
from tidemill.physical.finish import exchange, finish, references
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal
from tidemill.types.logical import BIGINT, BOOLEAN, Field, LogicalType

REPLICATE_ROWS = "$REPLICATE_ROWS$1"
_COUNT = BIGINT.with_nullable(False)


def plan_set_operation(
    node: n.SetOp, branches: tuple[p.PhysicalNode, ...], *, state_ttl: int
) -> p.PhysicalNode:
    def step(left: p.PhysicalNode, right: p.PhysicalNode) -> p.PhysicalNode:
        return _binary(node, left, right, state_ttl=state_ttl)

    combined = reduce(step, branches)
    if node.kind is n.SetKind.UNION and not node.all:
        return distinct(combined, node.fields, state_ttl)
    return combined


def _binary(
    node: n.SetOp,
    left: p.PhysicalNode,
    right: p.PhysicalNode,
    *,
    state_ttl: int,
) -> p.PhysicalNode:
    if node.kind is n.SetKind.UNION:
        return finish(p.Union(fields=node.fields, branches=(left, right)))
    if node.all:
        return _ALL[node.kind](node.fields, left, right, state_ttl)
    kind = n.JoinKind.SEMI if node.kind is n.SetKind.INTERSECT else n.JoinKind.ANTI
    keys = tuple(range(len(node.fields)))
    inputs = (exchange(left, keys), exchange(right, keys))
    join = finish(
        p.Join(
            fields=left.fields,
            left=inputs[0],
            right=inputs[1],
            kind=kind,
            left_keys=keys,
            right_keys=keys,
            null_safe=(True,) * len(keys),
            by_identity=(True,) * len(keys),
            residual=None,
            left_ttl=state_ttl,
            right_ttl=state_ttl,
        )
    )
    return distinct(join, node.fields, state_ttl)


def _with_markers(
    node: p.PhysicalNode, fields: tuple[Field, ...], markers: dict[str, Literal]
) -> p.PhysicalNode:
    extra = tuple(Field(name, x.type) for name, x in markers.items())
    projections = (*references(node.fields), *markers.values())
    return finish(p.Calc(fields=(*fields, *extra), input=node, projections=projections))


def _counted(
    fields: tuple[Field, ...],
    sides: tuple[p.PhysicalNode, ...],
    calls: tuple[AggregateCall, ...],
    state_ttl: int,
) -> p.PhysicalNode:
    union = finish(p.Union(fields=sides[0].fields, branches=sides))
    keys = tuple(range(len(fields)))
    return finish(
        p.GroupAggregate(
            fields=(*fields, *(Field(c.name, c.type) for c in calls)),
            input=exchange(union, keys),
            keys=keys,
            calls=calls,
            state_ttl=state_ttl,
        )
    )


def _replicated(
    counts: p.PhysicalNode, fields: tuple[Field, ...], times: Expr, condition: Expr
) -> p.PhysicalNode:
    """Each row of ``fields``, repeated ``times`` times."""
    refs = references(fields)
    counted = finish(
        p.Calc(
            fields=(Field("$times", times.type), *fields),
            input=counts,
            projections=(times, *refs),
            condition=condition,
        )
    )
    copies = tuple(Field(f"{f.name}0", f.type) for f in fields)
    correlate = finish(
        p.Correlate(
            fields=(*counted.fields, *_renamed_apart(copies, counted.fields)),
            input=counted,
            function=REPLICATE_ROWS,
            args=references(counted.fields),
            outer=False,
        )
    )
    last = references(correlate.fields)[len(counted.fields) :]
    return finish(p.Calc(fields=fields, input=correlate, projections=last))


def _renamed_apart(fields: tuple[Field, ...], used_fields: tuple[Field, ...]) -> tuple[Field, ...]:
    names = {f.name for f in used_fields}
    renamed = []
    for f in fields:
        name = f.name
        while name in names:
            name += "0"
        names.add(name)
        renamed.append(Field(name, f.type))
    return tuple(renamed)


def _compare(operator: str, left: Expr, right: Expr) -> Call:
    return Call(type=BOOLEAN, function=operator, args=(left, right))


def _intersect_all(
    fields: tuple[Field, ...], left: p.PhysicalNode, right: p.PhysicalNode, state_ttl: int
) -> p.PhysicalNode:
    yes, no = Literal(type=BOOLEAN, value=True), Literal(type=BOOLEAN, value=None)
    names = ("vcol_left_marker", "vcol_right_marker")
    sides = (
        _with_markers(left, fields, dict(zip(names, (yes, no), strict=True))),
        _with_markers(right, fields, dict(zip(names, (no, yes), strict=True))),
    )
    width = len(fields)
    calls = (
        AggregateCall(function="COUNT", args=(width,), type=_COUNT, name="vcol_left_cnt"),
        AggregateCall(function="COUNT", args=(width + 1,), type=_COUNT, name="vcol_right_cnt"),
    )
    counts = _counted(fields, sides, calls, state_ttl)
    a, b = (InputRef(type=_COUNT, index=width + i) for i in (0, 1))
    one = Literal(type=_COUNT, value=1)
    smaller = Call(type=_COUNT, function="IF", args=(_compare(">", a, b), b, a))
    both = Call(type=BOOLEAN, function="AND", args=(_compare(">=", a, one), _compare(">=", b, one)))
    return _replicated(counts, fields, smaller, both)


def _except_all(
    fields: tuple[Field, ...], left: p.PhysicalNode, right: p.PhysicalNode, state_ttl: int
) -> p.PhysicalNode:
    sides = (_marked(left, fields, 1, _COUNT), _marked(right, fields, -1, _COUNT))
    width = len(fields)
    total = AggregateCall(function="SUM", args=(width,), type=BIGINT, name="sum_vcol_marker")
    counts = _counted(fields, sides, (total,), state_ttl)
    ref = InputRef(type=BIGINT, index=width)
    return _replicated(counts, fields, ref, _compare(">", ref, Literal(type=_COUNT, value=0)))


def _marked(node: p.PhysicalNode, fields: tuple[Field, ...], sign: int, kind: LogicalType) -> p.PhysicalNode:
    return _with_markers(node, fields, {"vcol_marker": Literal(type=kind, value=sign)})


_ALL: dict[n.SetKind, Callable[..., p.PhysicalNode]] = {
    n.SetKind.INTERSECT: _intersect_all,
    n.SetKind.EXCEPT: _except_all,
}
