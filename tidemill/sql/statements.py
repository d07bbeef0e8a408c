"""Statements as frozen values: what one statement of a script asks for.

Every statement has its ``text`` as written and the ``position`` of its first character in the script.
A ``Path`` is a dotted name as written: one to three parts. Nothing here has been looked up; types of
columns are resolved, because a type's text needs no catalog (``None`` for computed columns).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from tidemill.catalog.table import Distribution
from tidemill.errors import Position
from tidemill.types.logical import LogicalType

Path = tuple[str, ...]
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    text: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Statement):
    """A SELECT, VALUES, WITH or set operation."""

    tree: exp.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported(Statement):
    """Valid Flink SQL that no part of Tidemill runs; ``feature`` names it."""

    feature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert(Statement):
    """INSERT INTO / OVERWRITE. ``partition`` values are None where written without one.

    ``conflict`` is '', 'NOTHING', 'ERROR' or 'DEDUPLICATE'. ``hints`` are the OPTIONS of the target.
    """

    target: Path
    query: exp.Expression
    target_position: Position
    columns: tuple[str, ...] = ()
    partition: tuple[tuple[str, exp.Expression | None], ...] = ()
    overwrite: bool = False
    conflict: str = ""
    hints: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementSet(Statement):
    """EXECUTE STATEMENT SET BEGIN ... END."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Statement):
    """``details`` of CHANGELOG_MODE, EXECUTION_PLAN, ESTIMATED_COST, JSON_EXECUTION_PLAN, PLAN_ADVICE, as
    written."""

    target: Query | Insert | StatementSet | CreateTable | Unsupported
    details: tuple[str, ...] = ()


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
    """PRIMARY KEY or UNIQUE (``kind``); ``enforced`` None where neither word was written."""

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
class CreateTable(Statement):
    """CREATE TABLE, also LIKE and AS. ``column_names`` is CTAS's list of names without types; ``must_exist``:
    REPLACE TABLE, without CREATE OR."""

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
class Drop(Statement):
    """``cascade`` matters for databases only."""

    path: Path
    if_exists: bool = False
    temporary: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase(Drop):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction(Drop):
    """``system`` is DROP TEMPORARY SYSTEM FUNCTION."""

    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    to: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions:
    keys: tuple[str, ...]


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
class AlterView(Statement):
    """RENAME TO (``rename``) or a new query."""

    path: Path
    rename: Path = ()
    query: exp.Expression | None = None
    query_text: str = ""
    query_position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog(Statement):
    name: str
    options: Options = ()
    comment: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetComment:
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterCatalog(Statement):
    name: str
    change: SetOptions | ResetOptions | SetComment


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase(Statement):
    path: Path
    options: Options = ()
    comment: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase(Statement):
    path: Path
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCatalog(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UseDatabase(Statement):
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class UseModules(Statement):
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadModule(Statement):
    name: str
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnloadModule(Statement):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction(Statement):
    """``language`` is in upper case, JAVA where not written."""

    path: Path
    identifier: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterFunction(Statement):
    """``language`` as of CreateFunction."""

    path: Path
    identifier: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateModel(Statement):
    path: Path
    inputs: tuple[PhysicalColumn, ...] = ()
    outputs: tuple[PhysicalColumn, ...] = ()
    options: Options = ()
    comment: str = ""
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterModel(Statement):
    path: Path
    change: RenameTable | SetOptions | ResetOptions
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropModel(Drop):
    pass


class ShowKind(Enum):
    """What SHOW lists; the value is the words after SHOW."""

    TABLES = "TABLES"
    VIEWS = "VIEWS"
    CATALOGS = "CATALOGS"
    DATABASES = "DATABASES"
    FUNCTIONS = "FUNCTIONS"
    USER_FUNCTIONS = "USER FUNCTIONS"
    CURRENT_CATALOG = "CURRENT CATALOG"
    CURRENT_DATABASE = "CURRENT DATABASE"
    MODULES = "MODULES"
    FULL_MODULES = "FULL MODULES"
    JARS = "JARS"
    JOBS = "JOBS"
    COLUMNS = "COLUMNS"
    PARTITIONS = "PARTITIONS"
    CREATE_TABLE = "CREATE TABLE"
    CREATE_VIEW = "CREATE VIEW"
    CREATE_CATALOG = "CREATE CATALOG"
    CREATE_MODEL = "CREATE MODEL"
    CREATE_MATERIALIZED_TABLE = "CREATE MATERIALIZED TABLE"
    MODELS = "MODELS"
    MATERIALIZED_TABLES = "MATERIALIZED TABLES"
    PROCEDURES = "PROCEDURES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Show(Statement):
    """``path`` is the object, or the catalog/database after FROM / IN; ``pattern`` of [NOT] LIKE/ILIKE.

    ``pattern`` is None where not written; ``partition`` filters SHOW PARTITIONS.
    """

    kind: ShowKind
    path: Path = ()
    pattern: str | None = None
    negated: bool = False
    case_insensitive: bool = False
    partition: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe(Statement):
    """DESCRIBE [EXTENDED] table."""

    path: Path
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeCatalog(Statement):
    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeFunction(Statement):
    path: Path
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeModel(Statement):
    path: Path
    extended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption(Statement):
    """SET 'key' = 'value'; a bare SET lists the options and has an empty key."""

    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOption(Statement):
    """RESET 'key'; a bare RESET has an empty key."""

    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddJar(Statement):
    jar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopJob(Statement):
    """``savepoint`` and ``drain``: WITH SAVEPOINT, WITH DRAIN."""

    job_id: str
    savepoint: bool = False
    drain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeJob(Statement):
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveJar(Statement):
    jar: str
