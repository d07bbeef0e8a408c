"""Physical stream nodes, named as Flink's EXPLAIN names them, with their traits.

Every node knows its output ``fields`` and its ``traits``; ``changelogMode`` in EXPLAIN is
``traits.kinds``. Nodes that only exist to say how Flink would split work (LocalGroupAggregate,
IncrementalGroupAggregate, the PARTIAL half of a split distinct aggregate) are skipped by the exec
graph: the node that ends such a group carries the whole meaning in ``core`` (see AggregateCore).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.lookup.options import Retry
from tidemill.plan.expressions import AggregateCall, Expr, Literal, OverCall, SortKey
from tidemill.plan.nodes import ChangelogCall, JoinKind, Months, WindowKind
from tidemill.plan.patterns import Pattern
from tidemill.types.logical import Field
from tidemill.types.values import is_identity
from tidemill.user_functions.calls import BoundTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """``kinds``: the RowKinds on the edge out of the node. Keys are sets of field indexes."""

    kinds: frozenset[RowKind] = INSERT_ONLY
    unique_keys: frozenset[frozenset[int]] = frozenset()
    upsert_keys: frozenset[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNode:
    fields: tuple[Field, ...]
    traits: Traits

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSourceScan(PhysicalNode):
    """``columns``: names of the table's physical/metadata columns, parallel to ``fields``."""

    table: CatalogTable
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    filters: tuple[Expr, ...] = ()
    projected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFrameScan(PhysicalNode):
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(PhysicalNode):
    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(PhysicalNode):
    input: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calc(Unary):
    """Filter by ``condition`` (over the input), then one expression per field.

    ``phase`` marks a Calc that only serves the phases of a split aggregation (see AggregateCore).
    """

    projections: tuple[Expr, ...]
    condition: Expr | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkAssigner(Unary):
    rowtime: int
    watermark: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatchAssigner(Unary):
    """``interval`` in milliseconds; ``mode`` ProcTime or RowTime."""

    interval: int
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Unary):
    """Hash by field indexes ``keys``; no keys is distribution=[single]."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(Unary):
    """Each input row gives one row per projection; ``phase`` as in Calc."""

    projections: tuple[tuple[Expr, ...], ...]
    phase: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCore:
    """The whole meaning of an aggregation, whatever phases EXPLAIN shows.

    ``input`` is the node below the first phase's exchange or local aggregate (below the bucket Calc and
    Expand of a split distinct aggregate); indexes in ``keys`` and ``calls`` are of its fields. The
    aggregate's output is keys, then calls, in the field order of the node that carries the core.
    """

    input: PhysicalNode
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    state_ttl: int = 0
    """Milliseconds; 0 keeps state for ever (table.exec.state.ttl or a STATE_TTL hint)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAggregate(Unary):
    """One-phase, or one half of a split distinct aggregate (``phase`` PARTIAL or FINAL).

    ``core`` is set on the node that ends the aggregation (phase '' or FINAL); the exec graph goes on
    at ``core.input``.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    core: AggregateCore | None = None
    ttl_hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGroupAggregate(Unary):
    """Shown in EXPLAIN; ``select`` are the display texts of its outputs."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    select: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalGroupAggregate(Unary):
    partial_keys: tuple[int, ...]
    final_keys: tuple[int, ...]
    select: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalGroupAggregate(Unary):
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    select: tuple[str, ...] = ()
    core: AggregateCore | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(PhysicalNode):
    branches: tuple[PhysicalNode, ...]

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalize(Unary):
    """Keeps the last row per ``keys``; turns an upsert or duplicate-ridden changelog into a full one.

    ``condition`` filters the full changelog: a row that no longer passes is retracted.
    """

    keys: tuple[int, ...]
    condition: Expr | None = None
    state_ttl: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUpdateBefore(Unary):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Unary):
    """Top-N: rows ``start``..``end`` of each partition; the rank column is last iff ``with_rank``.

    ``strategies`` are the ones that would do, best first; ``strategy`` the chosen one. ``time`` is
    ROWTIME or PROCTIME where the only order is such an attribute: with ROW_NUMBER and range 1..1 the
    node is a deduplication (see ``keeps_first``, ``is_deduplicate``). ``insert_only``: a row once given
    never changes.
    """

    function: str
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    start: int
    end: int
    with_rank: bool
    strategies: tuple[str, ...]
    strategy: str = ""
    time: str = ""
    insert_only: bool = False
    state_ttl: int = 0

    @property
    def is_deduplicate(self) -> bool:
        top_one = self.start == self.end == 1 and not self.with_rank
        return bool(self.time) and top_one and self.function == "ROW_NUMBER"

    @property
    def keeps_first(self) -> bool:
        return self.order[0].ascending


@dataclass(frozen=True, slots=True, kw_only=True)
class SortLimit(Unary):
    """ORDER BY ... LIMIT (or LIMIT alone: no ``order``) of a stream."""

    order: tuple[SortKey, ...]
    offset: int
    fetch: int | None
    strategies: tuple[str, ...] = ()
    strategy: str = ""
    state_ttl: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Unary):
    """ORDER BY of a whole input; ``by_time`` where its first key is ascending event time."""

    order: tuple[SortKey, ...]
    by_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverAggregate(Unary):
    """The input's fields, then one per call; all calls share partition and order.

    ``time`` is ROWTIME or PROCTIME where the input is append-only and its order is that ascending
    attribute alone, so that rows once given stay; '' recomputes touched partitions.
    """

    calls: tuple[OverCall, ...]
    time: str = ""
    state_ttl: int = 0


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
class WindowAggregate(Unary):
    """One row per window and key when the window's end has come. Fields: the keys, the calls, then one per
    ``properties`` (start, end or time of the window). Windows are cut by the input's field ``time``; with
    ``attached`` that is the end of the window which a row is in already. With ``emit`` rows are updated."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    window: Window
    time: int
    properties: tuple[str, ...]
    attached: bool = False
    emit: Emit | None = None
    merged: tuple[str, ...] = ()
    """The display texts of the calls over what a LocalWindowAggregate below the exchange gives."""

    @property
    def local(self) -> LocalWindowAggregate | None:
        """The phase that is shown below the exchange, if there is one."""
        below = self.input.inputs[0] if self.input.inputs else None
        return below if isinstance(below, LocalWindowAggregate) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWindowAggregate(Unary):
    """Shown in EXPLAIN below the exchange of a window aggregation, whose writer does it: it hands on the rows
    that it gets. ``select`` are the display texts of its outputs."""

    keys: tuple[int, ...]
    window: Window
    time: int
    attached: bool
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedWindow:
    """The window that rows are in already: ``window`` as it was cut, and where its ends stand in a row."""

    window: Window
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRank(Rank):
    """A Top-N of each window, when the window's end has come: its rows stay. ``keys``: the partition without
    the window's columns, by which rows are sent."""

    attached: AttachedWindow
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Unary):
    """MATCH_RECOGNIZE, as in ``plan.nodes.MatchRecognize``: a row per match, when it is known."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Pattern
    definitions: tuple[tuple[int, Expr], ...]
    measures: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlate(Unary):
    """UNNEST (``function`` UNNEST) or a table function per row; outer keeps rows without result.

    ``user`` is a user's function; ``function`` is then its name. ``condition``, over all fields, chooses
    among the results.
    """

    function: str
    args: tuple[Expr, ...]
    outer: bool
    ordinality: bool = False
    user: BoundTable | None = None
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToChangelog(Unary):
    """Every change as a row that stays: its code (``codes``: by kind; a change without one is left out), then
    the input's fields. ``call`` is shown only."""

    codes: tuple[tuple[RowKind, str], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FromChangelog(Unary):
    """Every row as the change that its code in the input's field ``op`` says; the fields are the others.
    ``call`` is shown only."""

    op: int
    codes: tuple[tuple[str, RowKind], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(PhysicalNode):
    """Equi keys ``left_keys[i] = right_keys[i]`` plus ``residual`` over left fields + right fields.

    ``null_safe[i]``: key i compares NULLs as equal; ``by_identity[i]`` (none: no key): it brings together
    what GROUP BY would, not what ``=`` calls equal. ``*_spec``: JoinKeyContainsUniqueKey, HasUniqueKey
    or NoUniqueKey. ``null_aware`` (NOT IN): the first so many keys count as equal if either side is
    NULL; the inputs are partitioned by the others. ``overwrites``: a side that is keyed by its join
    columns may come without -U; our kernels add up weights and get -U with every +U.
    """

    left: PhysicalNode
    right: PhysicalNode
    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    by_identity: tuple[bool, ...] = ()
    residual: Expr | None
    left_spec: str
    right_spec: str
    mini_batch: bool = False
    null_aware: int = 0
    left_ttl: int = 0
    right_ttl: int = 0
    ttl_hints: tuple[tuple[str, str], ...] = ()
    overwrites: bool = True

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.left, self.right)

    @property
    def partition_keys(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns either side is sent by."""
        return self.left_keys[self.null_aware :], self.right_keys[self.null_aware :]

    @property
    def counts_nulls(self) -> bool:
        """Whether it is a NOT IN of one key, which runs partitioned by it: all partitions know of NULLs. What
        expires is not counted, and where equal values are not one there is no such key."""
        if self.null_aware != 1 or len(self.left_keys) > 1 or self.residual is not None:
            return False
        sides = ((self.left, self.left_keys), (self.right, self.right_keys))
        exact = all(is_identity(side.fields[keys[0]].type) for side, keys in sides)
        return exact and not (self.left_ttl or self.right_ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBounds:
    """``left[left] - right[right]`` lies between ``lower`` and ``upper`` milliseconds, both inclusive."""

    rowtime: bool
    lower: int
    upper: int
    left: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalJoin(Join):
    """A join whose sides' times are a bounded distance apart."""

    bounds: TimeBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowJoin(Join):
    """A join of rows of the same window, when the window's end has come: its rows stay. The windows' columns
    are keys like others, but rows are not sent by them."""

    left_window: AttachedWindow
    right_window: AttachedWindow

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(Join):
    """INNER or LEFT: a left row with the right row of its keys as of the time in its field ``left_time``;
    since when a right row holds says ``right_time``. ``version_key``: of right fields; there is one row of it
    at a time. As it runs, the right side's rows are all versions as they came: ``alive`` is a field that is
    TRUE where a version can be seen (None: all can), with ``latest`` one older than one that came before is
    none.
    """

    left_time: int
    right_time: int
    version_key: tuple[int, ...]
    alive: int | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoin(Unary):
    """INNER or LEFT: the input's fields, then those of ``table`` (its ``columns``) for every row that it
    gives for the row's ``keys``: places in the input and among the columns, where the ``condition``, over all
    fields, holds. ``retry``: of keys that have no rows."""

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    kind: JoinKind
    keys: tuple[tuple[int, int], ...]
    condition: Expr | None = None
    retry: Retry | None = None
    overwrites: bool = True
    """As Flink shows it: updates go on in the form that is asked for. As it runs, each -U is needed."""

    @property
    def finds_one(self) -> bool:
        """Whether the table says that it has one row of a key at most."""
        primary = self.table.primary_key
        return bool(primary) and {self.columns[column] for _, column in self.keys} >= set(primary)

    @property
    def keeps_rows(self) -> bool:
        """Whether each row of the input is there as often as it was."""
        return self.kind is JoinKind.LEFT and self.finds_one


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Unary):
    """``consumed``: the kinds the sink takes; ``materialize``: SinkUpsertMaterializer is needed.

    ``retract``: it wants -U/+U pairs even of an upsert stream, so each change names the row it replaces.
    ``input.traits.kinds`` are the kinds that really arrive. The sink itself produces no kinds. ``state_ttl``:
    of the materializer.
    """

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    consumed: frozenset[RowKind]
    retract: bool = False
    materialize: bool = False
    conflict: str = ""
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    target_columns: tuple[str, ...] = ()
    state_ttl: int = 0
