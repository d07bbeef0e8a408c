"""Windows of time, and what is computed by window."""

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
    """What a window table function says: ``size``, ``slide`` (HOP's slide, the step of what cumulates) and
    ``offset`` in milliseconds. The gap of windows that rows make is ``size``, 0 where they never end; then
    their state goes after ``state_ttl``. ``zoned``: its time column is TIMESTAMP_LTZ; ``group``: it was
    written in GROUP BY; ``proctime``: its time is the clock's."""

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
    """When a window shows its result other than once at its end, in ms: ``early`` and ``late`` are how long a
    change waits before and after the end (None: nothing is shown early; late changes are shown at once),
    ``lateness`` how far time may be beyond the end when a row still counts."""

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
    """A WindowTableFunction whose windows the rows of a ``partition`` make: a row for every window of a row,
    when that has ended. Fields as there."""

    window: Window
    time: int
    partition: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Rows in ``buckets`` by the values of each of the ``sets`` of columns. Of windows that rows make all of
    them have every row of some keys, as bounds need it: it counts where its values are, what columns
    ``with_first`` and ``flags`` say where those of the first set are."""

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
    ``properties`` (start, end or time of the window). Windows are cut by the input's field ``time``; with
    ``attached`` that is the end of the window which a row is in already. With ``emit`` rows are updated. With
    ``spread`` there is a row per bucket, which is not among the fields, in place of one. ``split``: in so
    many buckets Flink splits what is DISTINCT. With ``reuse`` keys may share their distinct values; in the
    plan that runs they do, and there is a row per partition in place of one, of CUMULATE for each step what
    is new in it."""

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
        """What is below the exchange."""
        (below,) = self.input.inputs
        return below


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedWindow:
    """The window that rows are in already: ``window`` as it was cut, and where its ends stand in a row."""

    window: Window
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRank(Rank):
    """A Top-N of each window, when the window's end has come: its rows stay, unless ``emit`` shows it more
    than once. ``keys``: the partition without the window's columns, by which rows are sent."""

    attached: AttachedWindow
    keys: tuple[int, ...]
    emit: Emit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoin(Join):
    """A join of rows of the same window, when the window's end has come: its rows stay, unless ``emit`` shows
    them more than once. The windows' columns are keys like others, but rows are not sent by them."""

    left_window: AttachedWindow
    right_window: AttachedWindow
    emit: Emit | None = None

    @property
    def partition_keys(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns either side is sent by."""
        rest = [pair for pair in self.key_pairs if not self.is_window(*pair)]
        return tuple(a for a, _ in rest), tuple(b for _, b in rest)

    @property
    def key_pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.left_keys, self.right_keys, strict=True))

    def is_window(self, left: int, right: int) -> bool:
        """Whether these columns are the same end of the window."""
        a, b = self.left_window, self.right_window
        return (left, right) in ((a.start, b.start), (a.end, b.end))
