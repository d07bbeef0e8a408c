"""The bound logical plan: relational algebra over typed, uniquely named fields.

Invariants, checked at birth: field names of a node are unique; every index is in range. ``fields``
of a node are its output columns. Nodes are values: rules build new ones with ``dataclasses.replace``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.lookup.options import Retry
from tidemill.errors import Position
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.plan.expressions import AggregateCall, Expr, Literal, OverCall, SortKey
from tidemill.plan.patterns import Pattern
from tidemill.types.logical import Field
from tidemill.user_functions.calls import BoundTable


class JoinKind(Enum):
    INNER = "InnerJoin"
    LEFT = "LeftOuterJoin"
    RIGHT = "RightOuterJoin"
    FULL = "FullOuterJoin"
    SEMI = "LeftSemiJoin"
    ANTI = "LeftAntiJoin"


class SetKind(Enum):
    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalNode:
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [f.name for f in self.fields]
        if len(set(names)) != len(names):
            raise ValueError(f"{type(self).__name__}: field names are not unique: {names}")

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(LogicalNode):
    """A table's physical and metadata columns, in the order of ``columns`` (names in the table).

    Computed columns and watermarks are separate Project and Watermark nodes above it. ``filters``
    are conjuncts over ``fields`` that the source may use to skip data; they stay in a Filter above.
    ``options`` are the table's, with OPTIONS hints applied.
    """

    table: CatalogTable
    columns: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    filters: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameScan(LogicalNode):
    """A Spark DataFrame registered as a view; ``key`` names it in the session."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(LogicalNode):
    """Constant rows; every literal has its field's type."""

    rows: tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(LogicalNode):
    input: LogicalNode

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """How long rows may wait for their epoch, in ms, and how many it may have; None: not said."""

    latency: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Unary):
    """One expression per field. ``bundle``: what a MINI_BATCH hint of its SELECT asks for."""

    expressions: tuple[Expr, ...]
    bundle: Bundle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Unary):
    condition: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark(Unary):
    """Declares field ``rowtime`` a time attribute with watermark ``expression`` (over the input)."""

    rowtime: int
    expression: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand(Unary):
    """Each input row gives one row per projection; one expression per field in each."""

    projections: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Unary):
    """Group by field indexes ``keys``; fields are the keys, then one per call.

    No keys is a global aggregate. GROUPING SETS, ROLLUP, CUBE are an Expand below and a plain
    Aggregate. SELECT DISTINCT is an Aggregate without calls.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Over(Unary):
    """Fields are the input's, then one per call."""

    calls: tuple[OverCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Unary):
    """ORDER BY (may be empty) with OFFSET and FETCH."""

    keys: tuple[SortKey, ...]
    offset: int = 0
    fetch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest(Unary):
    """CROSS/LEFT JOIN UNNEST(collection): fields are the input's, then the element's columns.

    ``outer`` keeps a row whose collection is empty or NULL. ``ordinality`` adds a last INT column.
    ``condition``, over all fields, says which elements there are; ``outer`` looks at what is left.
    """

    collection: Expr
    outer: bool = False
    ordinality: bool = False
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction(Unary):
    """LATERAL TABLE(f(args)): fields are the input's, then the columns of a user's function."""

    function: BoundTable
    args: tuple[Expr, ...]
    outer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogCall:
    """How TO_CHANGELOG or FROM_CHANGELOG was called; '' and None: not given."""

    op: str = ""
    mapping: Expr | None = None
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToChangelog(Unary):
    """Every change of the input as a row that stays: its code, then the input's fields.

    ``codes``: by kind; a change without one is left out.
    """

    codes: tuple[tuple[RowKind, str], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FromChangelog(Unary):
    """Every row of an insert-only input as the change that its code in column ``op`` says; the fields are the
    others. A code that is not among ``codes`` fails."""

    op: int
    codes: tuple[tuple[str, RowKind], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Months:
    """What of a window's size, slide and offset is in months; 0 where it is none, or in milliseconds."""

    size: int = 0
    slide: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTableFunction(Unary):
    """TABLE(TUMBLE(...)) etc.: the input's fields, then window_start, window_end, window_time.

    ``size``, ``slide`` (HOP's slide, the step of what cumulates) and ``offset`` in milliseconds. The gap of
    windows that rows make is ``size``, 0 where they never end. ``months``: what of these is counted so.
    ``group``: it was written as a group window. ``position`` is where it is called.
    """

    kind: WindowKind
    time: int
    size: int
    slide: int = 0
    offset: int = 0
    months: Months | None = None
    partition: tuple[int, ...] = ()
    group: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRecognize(Unary):
    """Fields are the partition's columns, then one per measure: a row per match.

    ``order``: the time first. ``definitions``: the conditions of variables, by place in the pattern; a
    variable without one takes any row.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Pattern
    definitions: tuple[tuple[int, Expr], ...]
    measures: tuple[Expr, ...]


JOIN_STRATEGIES = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(LogicalNode):
    """``condition`` sees left fields, then right fields; SEMI and ANTI give the left fields only.

    ``null_aware`` marks NOT IN's anti join. ``hints`` are STATE_TTL per side: ('LEFT'|'RIGHT', text).
    ``strategies``: of ``JOIN_STRATEGIES`` what hints wish for, each with its side.
    """

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    condition: Expr
    null_aware: bool = False
    hints: tuple[tuple[str, str], ...] = ()
    strategies: tuple[tuple[str, str], ...] = ()

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateralJoin(LogicalNode):
    """``left [LEFT] JOIN LATERAL (right) ON condition``: ``right`` runs for each left row, which is one level
    out of it. ``condition`` sees left fields, then right fields; ``kind`` is INNER or LEFT. The rules make
    a Join of it."""

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    condition: Expr
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalJoin(LogicalNode):
    """``left [LEFT] JOIN right FOR SYSTEM_TIME AS OF left.time``: every left row with the right row as it was
    at the time in its field ``time``. ``kind`` is INNER or LEFT; ``condition`` sees left fields, then right
    fields: what does not hold is not found, the version before is not asked. ``version``: the right field
    that says since when a row holds; None by processing time. ``retry``: what a LOOKUP hint says."""

    left: LogicalNode
    right: LogicalNode
    kind: JoinKind
    condition: Expr
    time: int
    version: int | None
    retry: Retry | None = None
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOp(LogicalNode):
    """All inputs have the fields' types (the binder adds casts)."""

    kind: SetKind
    all: bool
    branches: tuple[LogicalNode, ...]

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Unary):
    """INSERT INTO: the input's columns are the sink's physical (and writable metadata) columns by place,
    whatever their names, and cast where a value would not fit as it is; ``fields`` are the sink's own.

    ``conflict`` is '', 'ERROR', 'NOTHING' or 'DEDUPLICATE' of ON CONFLICT; ``static_partition`` and
    ``overwrite`` come from INSERT OVERWRITE / PARTITION (...). ``target_columns`` as written, if any.
    ``deletes``: the rows are those that a DELETE takes out, in batch mode.
    """

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    conflict: str = ""
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    target_columns: tuple[str, ...] = ()
    deletes: bool = False
