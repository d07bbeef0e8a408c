"""The bound logical plan: relational algebra over typed fields with unique names.

Invariants, checked in the constructor: field names of a node are unique; indexes are in range. ``fields``
of a node are its output columns. Nodes are values: rules build new ones with ``dataclasses.replace``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
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
    are conjuncts over ``fields`` that the source may use to skip data; a Filter above applies them.
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
    """The longest wait of a row for its epoch, in ms, and the most rows of an epoch; None: no limit."""

    latency: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Unary):
    """One expression per field. ``bundle``: of the MINI_BATCH hint of its SELECT."""

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
    ``condition``, over all fields, filters the elements before ``outer`` looks for a missing element.
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
    """The arguments of TO_CHANGELOG or FROM_CHANGELOG; '' and None for missing arguments."""

    op: str = ""
    mapping: Expr | None = None
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToChangelog(Unary):
    """Every change of the input as an insert-only row: its code, then the input's fields.

    ``codes``: by change kind. Changes without a code are dropped.
    """

    codes: tuple[tuple[RowKind, str], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FromChangelog(Unary):
    """Every row of an insert-only input as a change, whose kind is the code in column ``op``. The fields are
    the other columns. A code outside of ``codes`` fails the job."""

    op: int
    codes: tuple[tuple[str, RowKind], ...]
    call: ChangelogCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Months:
    """A window's size, slide and offset in months; 0 if missing or in milliseconds."""

    size: int = 0
    slide: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTableFunction(Unary):
    """TABLE(TUMBLE(...)) etc.: the input's fields, then window_start, window_end, window_time.

    ``size``, ``slide`` (HOP's slide, CUMULATE's step) and ``offset`` are in milliseconds. For data-driven
    windows ``size`` is the gap, 0 if they never end. ``months``: lengths in months. ``group``: it was written
    as a group window. ``position``: of the call.
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

    ``order``: the time first. ``definitions``: the conditions of variables by index in the pattern. A
    variable without a condition matches any row.
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
    ``strategies``: the ``JOIN_STRATEGIES`` of hints, each with its side.
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
    """``left [LEFT] JOIN LATERAL (right) ON condition``: ``right`` runs for each left row, and refers to it
    with level 1. ``condition`` sees left fields, then right fields; ``kind`` is INNER or LEFT. The rules
    replace it by a Join."""

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
    """``left [LEFT] JOIN right FOR SYSTEM_TIME AS OF left.time``: joins each left row with the right row's
    version at the time in the left field ``time``. ``kind`` is INNER or LEFT. ``condition`` sees left fields,
    then right fields; if it rejects that version, older versions are not tried. ``version``: the right field
    with a version's start; None by processing time. ``retry``: of a LOOKUP hint."""

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
    """INSERT INTO: the input's columns are the sink's physical and writable metadata columns by position;
    names may differ. ``fields`` are the sink's own.

    ``conflict`` is '', 'ERROR', 'NOTHING' or 'DEDUPLICATE' of ON CONFLICT; ``static_partition`` and
    ``overwrite`` come from INSERT OVERWRITE / PARTITION (...). ``target_columns`` as written, if any.
    ``kinds``: of the rows, in batch mode. ``merges``: the input has one more column, the kind of the row; two
    rows must not have the same primary key.
    """

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    conflict: str = ""
    overwrite: bool = False
    static_partition: tuple[tuple[str, str], ...] = ()
    target_columns: tuple[str, ...] = ()
    kinds: frozenset[RowKind] = INSERT_ONLY
    merges: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery(Expr):
    """An expression that contains a plan. The rules replace every subquery by a join. ``position``: its
    position in the SQL text."""

    plan: LogicalNode
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSubquery(Subquery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists(Subquery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class InSubquery(Subquery):
    """(operands) IN (plan), three-valued; NOT IN is a Call("NOT") around it."""

    operands: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.operands
