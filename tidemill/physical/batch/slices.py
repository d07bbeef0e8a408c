"""Aggregations by overlapping windows that run by slices: a row counts in its slice, windows add slices up.

It pays off for COUNT(DISTINCT), which otherwise has an entry per window, grouping set and value. The results
of slices must determine the results of windows for all calls. Nodes between the window function and the
aggregation may pass on a window's start, end and time, but must not compute with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.operators.window.assigners.cumulate import KIND as CUMULATE
from tidemill.operators.window.assigners.hop import KIND as HOP
from tidemill.operators.window.assigners.tumble import KIND as TUMBLE
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.conditions import columns
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, InputRef
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.values import has_floats, has_maps

_ROLES = ("start", "end", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slices:
    """``function`` makes the windows that ``node`` aggregates; ``calcs`` are between, bottom first. ``sets``:
    per grouping set the source's fields as expressions over the last Calc. ``roles``: for each key its role
    in the window (start, end, time), or ''."""

    node: b.Aggregate
    function: b.WindowTableFunction
    calcs: tuple[p.Calc, ...]
    sets: tuple[tuple[Expr, ...], ...]
    roles: tuple[str, ...]

    @property
    def window(self) -> n.WindowTableFunction:
        return self.function.window

    @property
    def width(self) -> int:
        """The width of a slice in milliseconds."""
        return math.gcd(self.window.size, self.window.slide)

    @property
    def as_windows(self) -> n.WindowTableFunction:
        """The slices as tumbling windows."""
        return replace(self.window, kind=TUMBLE, size=self.width, slide=0)

    @property
    def end(self) -> int:
        """The field of the last Calc with the end of the window."""
        end_column = self.sets[0][self.node.keys[self.roles.index("end")]]
        assert isinstance(end_column, InputRef)
        return end_column.index

    @property
    def keys(self) -> tuple[int, ...]:
        """The keys outside of the window, as fields of the source."""
        return tuple(k for k, role in zip(self.node.keys, self.roles, strict=True) if not role)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The fields of the last Calc that these keys read."""
        return tuple(sorted({i for each in self.sets for k in self.keys for i in columns(each[k])}))

    @property
    def read(self) -> tuple[int, ...]:
        """The fields of the source that calls read."""
        return _read(self.node.calls)


def by_slices(node: b.Aggregate) -> Slices | None:
    """The slices for ``node``; None if it does not run by slices."""
    if not _is_sum_of_slices(node):
        return None
    below = node.input
    sets: tuple[tuple[Expr, ...], ...] = (_references(below.fields),)
    if isinstance(below, p.Expand):
        sets, below = below.projections, below.input
    calcs: list[p.Calc] = []
    while isinstance(below, p.Calc):
        calcs.insert(0, below)
        below = below.input
    if not isinstance(below, b.WindowTableFunction) or not _overlap(below.window):
        return None
    window_columns = _window_columns(below, calcs, sets)
    roles = tuple(window_columns.get(k, "") for k in node.keys)
    if "end" not in roles or not all(_is_row_column(i, window_columns, sets) for i in _read(node.calls)):
        return None
    return Slices(node=node, function=below, calcs=tuple(calcs), sets=sets, roles=roles)


def _is_sum_of_slices(node: b.Aggregate) -> bool:
    """Whether one set of DISTINCT values is counted, and all other calls add up over slices. Keys with floats
    or maps are excluded: floats would need marks, and Spark cannot partition by maps."""
    counted = {(c.function, c.args, c.filter) for c in node.calls if c.distinct}
    keys, values = ([node.input.fields[i].type for i in x] for x in (node.keys, _read(node.calls)))
    return (
        [function for function, *_ in counted] == ["COUNT"]
        and all(c.distinct or _adds_up(c) for c in node.calls)
        and not any(map(has_floats, keys))
        and not any(map(has_maps, [*keys, *values]))
    )


def _adds_up(call: AggregateCall) -> bool:
    if call.function in ("SUM", "$SUM0"):
        return isinstance(call.type, t.INTEGER_TYPES)
    return call.user is None and call.function in ("COUNT", "MIN", "MAX")


def _overlap(window: n.WindowTableFunction) -> bool:
    return window.kind in (HOP, CUMULATE) and window.months is None and window.size > window.slide


def _references(fields: tuple[Field, ...]) -> tuple[Expr, ...]:
    return tuple(InputRef(type=f.type, index=i) for i, f in enumerate(fields))


def _window_columns(
    function: b.WindowTableFunction, calcs: Sequence[p.Calc], sets: tuple[tuple[Expr, ...], ...]
) -> dict[int, str]:
    """The role of each field above ``sets`` that is a window column in all sets; {} if a node computes with
    one."""
    width = len(function.fields) - len(_ROLES)
    roles = {width + i: role for i, role in enumerate(_ROLES)}
    for calc in calcs:
        if calc.condition is not None and columns(calc.condition) & roles.keys():
            return {}
        roles = _passed_on(calc.projections, roles)
    roles_by_set = [_passed_on(expressions, roles) for expressions in sets]
    return roles_by_set[0] if all(expressions == roles_by_set[0] for expressions in roles_by_set) else {}


def _passed_on(expressions: tuple[Expr, ...], roles: dict[int, str]) -> dict[int, str]:
    reading = {i: e for i, e in enumerate(expressions) if columns(e) & roles.keys()}
    if not all(isinstance(e, InputRef) for e in reading.values()):
        return {}
    return {i: roles[e.index] for i, e in reading.items() if isinstance(e, InputRef)}


def _is_row_column(column: int, roles: dict[int, str], sets: tuple[tuple[Expr, ...], ...]) -> bool:
    """Whether ``column`` is no window column, and the same expression in all sets."""
    return column not in roles and len({each[column] for each in sets}) == 1


def _read(calls: Sequence[AggregateCall]) -> tuple[int, ...]:
    indexes = (i for c in calls for i in (*c.args, *([] if c.filter is None else [c.filter])))
    return tuple(dict.fromkeys(indexes))
