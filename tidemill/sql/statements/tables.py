"""Tables and views: what makes, alters and drops them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from tidemill.catalog.table import Distribution
from tidemill.errors import Position
from tidemill.sql.statements.base import Drop, Options, Path, RenameTable, ResetOptions, SetOptions, Statement
from tidemill.types.logical import LogicalType


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalColumn:
    name: str
    type_text: str
    type: LogicalType
    position: Position
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """``name AS expression``; ``expression`` is the SQL text as written."""

    name: str
    expression: str
    position: Position
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataColumn:
    """``name type METADATA [FROM 'key'] [VIRTUAL]``; ``key`` is '' without FROM."""

    name: str
    type_text: str
    type: LogicalType
    position: Position
    key: str = ""
    virtual: bool = False
    comment: str = ""


ColumnDefinition = PhysicalColumn | ComputedColumn | MetadataColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """WATERMARK FOR column AS expression; ``column`` may be a path into a row."""

    column: Path
    expression: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """PRIMARY KEY or UNIQUE (``kind``); ``enforced`` None if neither word was written."""

    kind: str
    columns: tuple[str, ...]
    position: Position
    name: str = ""
    enforced: bool | None = None


class Placement(Enum):
    """Where ALTER TABLE puts a column: at the end, first, or after another."""

    LAST = "LAST"
    FIRST = "FIRST"
    AFTER = "AFTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedColumn:
    column: ColumnDefinition
    placement: Placement = Placement.LAST
    after: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """LIKE source (INCLUDING ALL, EXCLUDING OPTIONS ...); ``options`` are (verb, feature) pairs."""

    source: Path
    position: Position
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """FRESHNESS of a materialized table: a number, as written, of a ``unit``."""

    number: str
    unit: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable(Statement):
    """CREATE TABLE, also LIKE and AS. ``column_names`` is CTAS's list of names without types; ``must_exist``:
    REPLACE TABLE, without CREATE OR; ``freshness``: CREATE MATERIALIZED TABLE, which has a query, and how
    fresh its rows shall be; ``or_alter``: CREATE OR ALTER of that."""

    path: Path
    columns: tuple[ColumnDefinition, ...] = ()
    column_names: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    distribution: Distribution | None = None
    options: Options = ()
    comment: str = ""
    like: Like | None = None
    query: exp.Expression | None = None
    query_text: str = ""
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False
    freshness: Freshness | None = None
    or_alter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView(Statement):
    """``query_text`` is the text after AS, as written."""

    path: Path
    query: exp.Expression
    query_text: str
    query_position: Position
    columns: tuple[str, ...] = ()
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable(Statement):
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMaterializedTable(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class AddSchema:
    columns: tuple[PlacedColumn, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    watermarks: tuple[Watermark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifySchema:
    columns: tuple[PlacedColumn, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    watermarks: tuple[Watermark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    column: Path
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumns:
    columns: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """``name`` is '' for DROP PRIMARY KEY."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropWatermark:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDistribution:
    """ADD, MODIFY or DROP (None) DISTRIBUTION; ``add``: there must be none before."""

    distribution: Distribution | None
    add: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """Pairs of values by column and options."""

    partitions: tuple[tuple[Options, Options], ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    partitions: tuple[Options, ...]
    if_exists: bool = False


TableChange = (
    RenameTable
    | SetOptions
    | ResetOptions
    | AddSchema
    | ModifySchema
    | RenameColumn
    | DropColumns
    | DropConstraint
    | DropWatermark
    | SetDistribution
    | AddPartitions
    | DropPartitions
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable(Statement):
    path: Path
    change: TableChange
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterMaterializedTable(Statement):
    """ALTER MATERIALIZED TABLE path AS query."""

    path: Path
    query: exp.Expression
    query_text: str
    query_position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterView(Statement):
    """RENAME TO (``rename``) or a new query."""

    path: Path
    rename: Path = ()
    query: exp.Expression | None = None
    query_text: str = ""
    query_position: Position | None = None
