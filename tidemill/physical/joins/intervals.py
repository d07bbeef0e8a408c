"""Finds interval joins: joins whose conditions bound the distance between the sides' times.

    l.ts BETWEEN r.ts - INTERVAL '5' SECOND AND r.ts        -5000 <= l.ts - r.ts <= 0

With bounds the join knows when a row cannot match any more; without bounds it keeps all rows. As Flink's
``IntervalJoinUtil`` the module accepts comparisons of one time attribute per side, plus or minus constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.types.logical import DayTimeIntervalType, Field

_KINDS = (n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.RIGHT, n.JoinKind.FULL)
_SHIFTS = {"+": 1, "-": -1}
# The bounds of `left - right` that follow from `left op right + x`: lower and upper, in ms beyond x.
_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "=": (0, 0),
    ">": (1, None),
    ">=": (0, None),
    "<": (None, -1),
    "<=": (None, 0),
}
_MIRRORED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class _Distance:
    """``left - right`` of two time attributes is between the bounds; None: no bound."""

    left: int
    right: int
    lower: int | None
    upper: int | None


def time_bounds(
    kind: n.JoinKind, condition: Iterable[Expr], left: p.PhysicalNode, right: p.PhysicalNode
) -> p.TimeBounds | None:
    """The bounds in ``condition``, which is over left fields + right fields; None for a regular join."""
    if kind not in _KINDS or not (insert_only(left) and insert_only(right)):
        return None
    fields, width = (*left.fields, *right.fields), len(left.fields)
    distances = [d for part in condition if (d := _distance(part, fields, width)) is not None]
    lower = [d for d in distances if d.lower is not None]
    upper = [d for d in distances if d.upper is not None]
    if not lower or not upper or len({(d.left, d.right) for d in distances}) != 1:
        return None
    return p.TimeBounds(
        rowtime=fields[distances[0].left].type.time_attribute == "ROWTIME",
        lower=max(d.lower for d in lower if d.lower is not None),
        upper=min(d.upper for d in upper if d.upper is not None),
        left=distances[0].left,
        right=distances[0].right - width,
    )


def without_bounds(join: p.IntervalJoin) -> Expr | None:
    """The condition of a join without its keys and its bounds."""
    fields, width = (*join.left.fields, *join.right.fields), len(join.left.fields)
    parts = () if join.residual is None else conjuncts(join.residual)
    return conjunction(part for part in parts if _distance(part, fields, width) is None)


def _distance(part: Expr, fields: tuple[Field, ...], width: int) -> _Distance | None:
    if not isinstance(part, Call) or part.function not in _BOUNDS:
        return None
    first, second = _time(part.args[0], fields), _time(part.args[1], fields)
    if first is None or second is None:
        return None
    operator = part.function
    if first[0] >= width > second[0]:
        first, second, operator = second, first, _MIRRORED[operator]
    if not first[0] < width <= second[0]:
        return None
    offset = second[1] - first[1]
    lower, upper = (None if b is None else b + offset for b in _BOUNDS[operator])
    return _Distance(first[0], second[0], lower, upper)


def _time(expr: Expr, fields: tuple[Field, ...]) -> tuple[int, int] | None:
    """A time attribute plus a constant: its field index and the milliseconds."""
    if isinstance(expr, InputRef):
        return (expr.index, 0) if fields[expr.index].type.time_attribute else None
    if not isinstance(expr, Call) or expr.function not in _SHIFTS or len(expr.args) != 2:
        return None
    time, shift = _time(expr.args[0], fields), expr.args[1]
    if time is None or not isinstance(shift, Literal) or not isinstance(shift.type, DayTimeIntervalType):
        return None
    milliseconds = shift.value
    assert isinstance(milliseconds, int)
    return time[0], time[1] + _SHIFTS[expr.function] * milliseconds
