"""Which columns of a plan tell the window that a row is in.

A window table function gives ``window_start``, ``window_end`` and ``window_time``; projections, filters
and what works window by window (aggregation by the window, Top-N in it) hand them on. A row's window is
its start and its end: an operator works window by window only where both are there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowColumns:
    """``function`` made the windows; the others are field indexes."""

    function: n.WindowTableFunction
    starts: frozenset[int] = frozenset()
    ends: frozenset[int] = frozenset()
    times: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        return self.starts | self.ends | self.times

    def tell_window(self, columns: tuple[int, ...]) -> bool:
        """Whether a window's start and end are among ``columns``."""
        chosen = frozenset(columns)
        return bool(chosen & self.starts and chosen & self.ends)

    def moved(self, places: list[int | None]) -> WindowColumns | None:
        """The columns of a node whose field i is the input's column ``places[i]``."""
        starts, ends, times = (
            frozenset(i for i, p in enumerate(places) if p in columns)
            for columns in (self.starts, self.ends, self.times)
        )
        if not starts | ends | times:
            return None
        return WindowColumns(function=self.function, starts=starts, ends=ends, times=times)


@singledispatch
def window_columns(node: n.LogicalNode) -> WindowColumns | None:
    """None where rows are in no window that their columns tell."""
    return None


@window_columns.register
def _(node: n.WindowTableFunction) -> WindowColumns | None:
    start = len(node.input.fields)
    return WindowColumns(
        function=node,
        starts=frozenset({start}),
        ends=frozenset({start + 1}),
        times=frozenset({start + 2}),
    )


@window_columns.register
def _(node: n.Filter) -> WindowColumns | None:
    return window_columns(node.input)


@window_columns.register
def _(node: n.Project) -> WindowColumns | None:
    below = window_columns(node.input)
    if below is None:
        return None
    return below.moved([x.index if isinstance(x, InputRef) else None for x in node.expressions])


@window_columns.register
def _(node: n.Expand) -> WindowColumns | None:
    """Columns that every projection hands on."""
    below = window_columns(node.input)
    if below is None:
        return None
    places: list[int | None] = []
    for column in zip(*node.projections, strict=True):
        indexes = {x.index if isinstance(x, InputRef) else None for x in column}
        places.append(indexes.pop() if len(indexes) == 1 else None)
    return below.moved(places)


@window_columns.register
def _(node: n.Over) -> WindowColumns | None:
    return window_columns(node.input)


@window_columns.register
def _(node: n.Aggregate) -> WindowColumns | None:
    below = window_columns(node.input)
    if below is None or not below.tell_window(node.keys):
        return None
    return below.moved([*node.keys, *(None for _ in node.calls)])


@window_columns.register
def _(node: n.Join) -> WindowColumns | None:
    """The left side's, of a join that keeps left rows whole."""
    if node.kind not in (n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI):
        return None
    return window_columns(node.left)
