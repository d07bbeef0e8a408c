"""What asks for or changes the session's objects, options, libraries and jobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidemill.sql.statements.base import Options, Path, Statement
from tidemill.sql.statements.queries import Insert, StatementSet


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

    ``pattern`` is None if not written; ``partition`` filters SHOW PARTITIONS.
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
class AlterJob(Statement):
    """ALTER JOB 'id' AS INSERT ..., or a STATEMENT SET; or ALTER JOB 'id' SET ('key' = 'value', ...), which
    has no ``target``."""

    job_id: str
    target: Insert | StatementSet | None = None
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyJob(Statement):
    """VERIFY JOB 'id': a statement of Tidemill's own."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeJob(Statement):
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveJar(Statement):
    jar: str
