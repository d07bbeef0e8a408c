"""The columns of a plan that identify the window of a row.

A window table function adds ``window_start``, ``window_end`` and ``window_time``. Projections, filters and
operators by window (window aggregation, window Top-N, window join) pass them on. A row's window is its start
and its end, so an operator works by window only if the plan has both columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjuncts, equal_columns


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
        """Whether ``columns`` include the window's start and end."""
        chosen = frozenset(columns)
        return bool(chosen & self.starts and chosen & self.ends)

    def shifted(self, by: int) -> WindowColumns:
        """The columns shifted ``by`` to the right."""
        starts, ends, times = (
            frozenset(i + by for i in columns) for columns in (self.starts, self.ends, self.times)
        )
        return WindowColumns(function=self.function, starts=starts, ends=ends, times=times)

    def with_columns(self, other: WindowColumns) -> WindowColumns:
        """These columns, and the window columns of the other side of a window join."""
        return WindowColumns(
            function=self.function,
            starts=self.starts | other.starts,
            ends=self.ends | other.ends,
            times=self.times | other.times,
        )

    def moved(self, input_columns: list[int | None]) -> WindowColumns | None:
        """The columns of a node whose field i is the input's column ``input_columns[i]``."""
        starts, ends, times = (
            frozenset(i for i, p in enumerate(input_columns) if p in columns)
            for columns in (self.starts, self.ends, self.times)
        )
        if not starts | ends | times:
            return None
        return WindowColumns(function=self.function, starts=starts, ends=ends, times=times)


@once_per_node
def window_columns(node: n.LogicalNode) -> WindowColumns | None:
    """The window columns of ``node``; None if its columns do not identify a window."""
    return _columns(node)


@singledispatch
def _columns(node: n.LogicalNode) -> WindowColumns | None:
    return None


@_columns.register
def _(node: n.WindowTableFunction) -> WindowColumns | None:
    start = len(node.input.fields)
    return WindowColumns(
        function=node,
        starts=frozenset({start}),
        ends=frozenset({start + 1}),
        times=frozenset({start + 2}),
    )


@_columns.register
def _(node: n.Filter) -> WindowColumns | None:
    return window_columns(node.input)


@_columns.register
def _(node: n.Project) -> WindowColumns | None:
    below = window_columns(node.input)
    if below is None:
        return None
    return below.moved([x.index if isinstance(x, InputRef) else None for x in node.expressions])


@_columns.register
def _(node: n.Expand) -> WindowColumns | None:
    """The columns that every projection passes on at the same index."""
    below = window_columns(node.input)
    if below is None:
        return None
    input_columns: list[int | None] = []
    for column in zip(*node.projections, strict=True):
        indexes = {x.index if isinstance(x, InputRef) else None for x in column}
        input_columns.append(indexes.pop() if len(indexes) == 1 else None)
    return below.moved(input_columns)


@_columns.register
def _(node: n.Over) -> WindowColumns | None:
    """Window Top-N keeps the window: the partition includes it. Other OVER calls read several windows."""
    below = window_columns(node.input)
    if below is None or not all(below.tell_window(call.partition) for call in node.calls):
        return None
    return below


@_columns.register
def _(node: n.Aggregate) -> WindowColumns | None:
    below = window_columns(node.input)
    if below is None or not below.tell_window(node.keys):
        return None
    return below.moved([*node.keys, *(None for _ in node.calls)])


@_columns.register
def _(node: n.Join) -> WindowColumns | None:
    """A window join keeps the windows of the sides that it does not pad with NULLs."""
    windows = joined_windows(node)
    if windows is None or node.kind is n.JoinKind.FULL:
        return None
    left, right = windows.left, windows.right.shifted(len(node.left.fields))
    if node.kind is n.JoinKind.RIGHT:
        return right
    return left.with_columns(right) if node.kind is n.JoinKind.INNER else left


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedWindows:
    """The windows of both sides of a join on the window; each side's columns are its own fields."""

    left: WindowColumns
    right: WindowColumns

    def are(self, left: int, right: int) -> bool:
        """Whether the left and the right column are both window starts, or both window ends."""
        both = (left in self.left.starts, left in self.left.ends)
        return any(both) and both == (right in self.right.starts, right in self.right.ends)


def joined_windows(node: n.Join) -> JoinedWindows | None:
    """None if the join's condition does not equate the start and the end of the windows of both sides."""
    left, right = window_columns(node.left), window_columns(node.right)
    if left is None or right is None or node.null_aware:
        return None
    windows = JoinedWindows(left=left, right=right)
    width = len(node.left.fields)
    pairs = [pair for part in conjuncts(node.condition) if (pair := equal_columns(part, width)) is not None]
    same = [pair for pair in pairs if windows.are(*pair)]
    by_start = any(a in left.starts for a, _ in same)
    return windows if by_start and any(a in left.ends for a, _ in same) else None
