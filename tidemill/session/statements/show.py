"""SHOW: one row per name, sorted; [NOT] LIKE / ILIKE filters by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from tidemill.catalog.table import CatalogTable, CatalogView, upkeep_of
from tidemill.errors import NotSupportedError, SqlSyntaxError, ValidationError
from tidemill.functions import registry
from tidemill.session.context import SessionContext
from tidemill.session.modules import METADATA
from tidemill.session.result import TableResult, listing
from tidemill.session.schema import partitions
from tidemill.session.statements import show_create
from tidemill.session.statements.describe import show_columns
from tidemill.session.statements.jobs import show_jobs
from tidemill.session.statements.like import matches
from tidemill.sql import statements as s
from tidemill.sql.statements import ShowKind
from tidemill.types.logical import BOOLEAN, STRING, Field

Handler = Callable[[s.Show, SessionContext], TableResult]
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


def show(statement: s.Show, context: SessionContext) -> TableResult:
    return _KINDS[statement.kind](statement, context)


def _names(
    column: str, names: Callable[[s.Show, SessionContext], Iterable[str]], *, any_case: bool = False
) -> Handler:
    def run(statement: s.Show, context: SessionContext) -> TableResult:
        rows = [(n,) for n in sorted(names(statement, context)) if matches(statement, n, any_case=any_case)]
        return listing((Field(column, STRING),), rows)

    return run


def _tables(statement: s.Show, context: SessionContext) -> Iterable[str]:
    return context.names_within(*_database(statement, context))


def _views(statement: s.Show, context: SessionContext) -> Iterable[str]:
    catalogs = context.catalogs
    paths = catalogs.paths(*_database(statement, context))
    return (p.name for p in paths if not isinstance(catalogs.find(p), CatalogTable))


def _database(statement: s.Show, context: SessionContext) -> tuple[str, str]:
    """The database after FROM / IN, or the current one; it must exist."""
    catalogs = context.catalogs
    catalog, database = _place(statement, context)
    if catalog not in catalogs.catalogs or database not in catalogs.catalogs[catalog].databases:
        raise ValidationError(
            f"Database '{catalog}'.'{database}' doesn't exist.", position=statement.position
        )
    return catalog, database


def _databases(statement: s.Show, context: SessionContext) -> Iterable[str]:
    if len(statement.path) > 1:
        raise SqlSyntaxError(
            f"Show databases from/in identifier [ {'.'.join(statement.path)} ] format error, catalog must be "
            "a single part identifier.",
            position=statement.position,
        )
    name = statement.path[0] if statement.path else context.current_catalog
    return context.catalogs.catalog(name).databases


def _user_functions(statement: s.Show, context: SessionContext) -> Iterable[str]:
    return context.catalogs.functions.names(*_database(statement, context))


def _functions(statement: s.Show, context: SessionContext) -> Iterable[str]:
    core = context.modules.core_is_used
    built_in = {n.lower() for n in registry.names() if _NAME.fullmatch(n)} if core else set()
    built_in |= {METADATA} if context.modules.state_is_used else set()
    return built_in | set(_user_functions(statement, context))


def _modules(statement: s.Show, context: SessionContext) -> TableResult:
    columns = (Field("module name", STRING), Field("used", BOOLEAN))
    used, loaded = context.modules.used, context.modules.loaded
    return listing(columns, [(m, True) for m in used] + [(m, False) for m in loaded if m not in used])


def _partitions(statement: s.Show, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    table = context.catalogs.find(path)
    if not isinstance(table, CatalogTable):
        raise ValidationError(
            f"Table (or view) {path.database}.{path.name} does not exist in Catalog {path.catalog}.",
            position=statement.position,
        )
    names = partitions.listed(table, statement.partition)
    return listing((Field("partition name", STRING),), [(name,) for name in names])


def _models(statement: s.Show, context: SessionContext) -> Iterable[str]:
    return context.catalogs.models.names(*_place(statement, context))


def _materialized(statement: s.Show, context: SessionContext) -> Iterable[str]:
    catalogs = context.catalogs
    paths = catalogs.paths(*_database(statement, context))
    return (path.name for path in paths if upkeep_of(catalogs.find(path)))


def _create_materialized(statement: s.Show, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    entry = context.catalogs.find(path)
    quoted = show_create.quoted(path)
    if entry is None:
        raise ValidationError(
            f"Could not execute SHOW CREATE MATERIALIZED TABLE {path}. Materialized table with identifier "
            f"{quoted} does not exist.",
            position=statement.position,
        )
    upkeep = upkeep_of(entry)
    if isinstance(entry, CatalogTable) and upkeep is not None:
        return show_create.materialized_table(entry, upkeep, context)
    word = "table" if isinstance(entry, CatalogTable) else "view"
    raise ValidationError(
        f"SHOW CREATE MATERIALIZED TABLE is only supported for materialized tables, but {quoted} is a "
        f"{word}. Please use SHOW CREATE {word.upper()} instead.",
        position=statement.position,
    )


def _procedures(statement: s.Show, context: SessionContext) -> TableResult:
    """No kind of catalog has any: Flink's in memory says the same."""
    raise NotSupportedError(
        "listProcedures is not implemented for class org.apache.flink.table.catalog.GenericInMemoryCatalog."
    )


def _place(statement: s.Show, context: SessionContext) -> tuple[str, str]:
    catalogs = context.catalogs
    if not statement.path:
        return catalogs.current_catalog, catalogs.current_database
    return catalogs.qualify_database(statement.path)


def _create_model(statement: s.Show, context: SessionContext) -> TableResult:
    path = context.catalogs.qualify(statement.path)
    model = context.catalogs.models.find(path)
    if model is None:
        raise ValidationError(
            f"Could not execute SHOW CREATE MODEL. Model with identifier {show_create.quoted(path)} does "
            "not exist.",
            position=statement.position,
        )
    return show_create.model(model)


def _create_catalog(statement: s.Show, context: SessionContext) -> TableResult:
    return show_create.catalog(context.catalogs.described(statement.path[-1]))


def _create(view: bool) -> Handler:
    word, other = ("VIEW", "TABLE") if view else ("TABLE", "VIEW")

    def run(statement: s.Show, context: SessionContext) -> TableResult:
        path = context.catalogs.qualify(statement.path)
        entry = context.catalogs.find(path)
        quoted = show_create.quoted(path)
        if entry is None:
            raise ValidationError(
                f"Could not execute SHOW CREATE {word}. {word.capitalize()} with identifier {quoted} "
                "does not exist.",
                position=statement.position,
            )
        if isinstance(entry, CatalogTable) == view:
            raise ValidationError(
                f"SHOW CREATE {word} is only supported for {word.lower()}s, but {quoted} is a "
                f"{other.lower()}. Please use SHOW CREATE {other} instead.",
                position=statement.position,
            )
        if upkeep_of(entry) is not None:
            raise ValidationError(
                f"SHOW CREATE TABLE is only supported for tables, but {quoted} is a materialized table. "
                "Please use SHOW CREATE MATERIALIZED TABLE instead.",
                position=statement.position,
            )
        if isinstance(entry, CatalogTable):
            return show_create.table(entry)
        if isinstance(entry, CatalogView):
            return show_create.view(entry, context)
        raise NotSupportedError(f"{quoted} is a Spark DataFrame: it has no CREATE statement")

    return run


_KINDS: dict[ShowKind, Handler] = {
    ShowKind.TABLES: _names("table name", _tables),
    ShowKind.VIEWS: _names("view name", _views),
    ShowKind.CATALOGS: _names("catalog name", lambda _, c: c.catalogs.catalogs),
    ShowKind.DATABASES: _names("database name", _databases),
    ShowKind.FUNCTIONS: _names("function name", _functions, any_case=True),
    ShowKind.USER_FUNCTIONS: _names("function name", _user_functions, any_case=True),
    ShowKind.CURRENT_CATALOG: _names("current catalog name", lambda _, c: [c.current_catalog]),
    ShowKind.CURRENT_DATABASE: _names("current database name", lambda _, c: [c.current_database]),
    ShowKind.MODULES: _names("module name", lambda _, c: c.modules.used),
    ShowKind.FULL_MODULES: _modules,
    ShowKind.JARS: _names("jars", lambda _, __: ()),
    ShowKind.JOBS: show_jobs,
    ShowKind.COLUMNS: show_columns,
    ShowKind.PARTITIONS: _partitions,
    ShowKind.CREATE_TABLE: _create(view=False),
    ShowKind.CREATE_VIEW: _create(view=True),
    ShowKind.CREATE_CATALOG: _create_catalog,
    ShowKind.CREATE_MODEL: _create_model,
    ShowKind.CREATE_MATERIALIZED_TABLE: _create_materialized,
    ShowKind.MODELS: _names("model name", _models),
    ShowKind.MATERIALIZED_TABLES: _names("materialized table", _materialized),
    ShowKind.PROCEDURES: _procedures,
}
