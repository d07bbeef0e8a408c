"""Time windows, and operators by window."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.physical.nodes.aggregates import DistinctReuse
from tidemill.physical.nodes.base import PhysicalNode, Unary
from tidemill.physical.nodes.joins import Join
from tidemill.physical.nodes.orders import Rank
from tidemill.plan.expressions import AggregateCall
from tidemill.plan.nodes import Months


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The arguments of a window table function: ``size``, ``slide`` (HOP's slide, CUMULATE's step) and
    ``offset`` in milliseconds. For data-driven windows ``size`` is the gap, 0 if they never end; then their
    state expires after ``state_ttl``. ``zoned``: its time column is TIMESTAMP_LTZ. ``group``: it was written
    in GROUP BY. ``proctime``: it is by processing time."""

    kind: WindowKind
    size: int
    slide: int = 0
    offset: int = 0
    months: Months | None = None
    zoned: bool = False
    group: bool = False
    state_ttl: int = 0
    proctime: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit:
    """Early and late results of a window, in ms. ``early``: the delay of changes before the end (None: no
    early results). ``late``: the delay of changes after the end (None: no delay). ``lateness``: how far time
    may be beyond the end when a row still counts."""

    early: int | None = None
    late: int | None = None
    lateness: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTableFunction(Unary):
    """The input's fields, then window_start, window_end, window_time: a row for every window of a row."""

    window: Window
    time: int
    partition: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowsOfRows(Unary):
    """A WindowTableFunction with data-driven windows per ``partition``: emits a row per window of an input
    row when the window has ended. Fields as in WindowTableFunction."""

    window: Window
    time: int
    partition: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spreads rows over ``buckets`` by the values of each of the ``sets`` of columns. For data-driven windows
    every bucket gets all rows of hot keys, because bounds need all rows. A row counts in the bucket of its
    values; columns ``with_first`` and ``flags`` count in the bucket of the first set."""

    sets: tuple[tuple[int, ...], ...]
    buckets: int
    with_first: tuple[int, ...] = ()
    flags: tuple[int, ...] = ()
    itself: int | None = None
    """Of copies of rows the column that is true for one of each."""

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for columns in self.sets for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAggregate(Unary):
    """One row per window and key when the window's end has come. Fields: the keys, the calls, then one per
    ``properties`` (start, end or time of the window).

    ``time``: the input's time field; with ``attached`` the end of the window that a row already carries.
    ``emit``: early and late results update rows. ``spread``: emits a row per bucket, without the bucket as a
    field. ``split``: the number of buckets in which Flink splits DISTINCT. ``reuse``: keys may share distinct
    values; in the running plan they do, and a window has a row per partition, for CUMULATE per step with the
    step's new values."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: Window
    time: int
    properties: tuple[str, ...]
    attached: bool = False
    emit: Emit | None = None
    spread: Spread | None = None
    split: int = 0
    reuse: DistinctReuse | None = None

    @property
    def source(self) -> PhysicalNode:
        """The node below the exchange."""
        (below,) = self.input.inputs
        return below


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedWindow:
    """The window that rows already carry: the ``window`` function, and the fields of start and end."""

    window: Window
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRank(Rank):
    """A Top-N per window, emitted at the window's end. Its rows stay, unless ``emit`` adds early or late
    results. ``keys``: the partition without the window's columns, which distributes the rows."""

    attached: AttachedWindow
    keys: tuple[int, ...]
    emit: Emit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoin(Join):
    """A join of rows of the same window, emitted at the window's end. Its rows stay, unless ``emit`` adds
    early or late results. The windows' columns are keys, but do not distribute the rows."""

    left_window: AttachedWindow
    right_window: AttachedWindow
    emit: Emit | None = None

    @property
    def partition_keys(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns that partition each side."""
        rest = [pair for pair in self.key_pairs if not self.is_window(*pair)]
        return tuple(a for a, _ in rest), tuple(b for _, b in rest)

    @property
    def key_pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.left_keys, self.right_keys, strict=True))

    def is_window(self, left: int, right: int) -> bool:
        """Whether both columns are window starts, or both are window ends."""
        a, b = self.left_window, self.right_window
        return (left, right) in ((a.start, b.start), (a.end, b.end))
