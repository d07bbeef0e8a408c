"""Catalogs and databases: CREATE, ALTER, USE; functions, which have their names in them; modules."""

from __future__ import annotations

from tidemill.catalog.memory import Database
from tidemill.catalog.objects import CatalogFunction
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s


def create_catalog(statement: s.CreateCatalog, context: SessionContext) -> TableResult:
    context.catalogs.create_catalog(
        statement.name,
        dict(statement.options),
        comment=statement.comment or None,
        ignore_if_exists=statement.if_not_exists,
    )
    return ok()


def alter_catalog(statement: s.AlterCatalog, context: SessionContext) -> TableResult:
    """What the catalog is made from; it is made anew with that."""
    catalog = context.catalogs.catalogs.get(statement.name)
    options = {} if catalog is None else dict(catalog.options)
    comment = None if catalog is None else catalog.comment
    match statement.change:
        case s.SetOptions(options=changed):
            options.update(changed)
        case s.ResetOptions(keys=keys):
            _check_reset(statement, keys)
            options = {k: v for k, v in options.items() if k not in keys}
        case s.SetComment(comment=words):
            comment = words
    context.catalogs.alter_catalog(statement.name, options, comment)
    return ok()


def _check_reset(statement: s.AlterCatalog, keys: tuple[str, ...]) -> None:
    if not keys:
        raise ValidationError("ALTER CATALOG RESET does not support empty key", position=statement.position)
    if "type" in keys:
        raise ValidationError(
            "ALTER CATALOG RESET does not support changing 'type'", position=statement.position
        )


def create_database(statement: s.CreateDatabase, context: SessionContext) -> TableResult:
    catalog, name = context.catalogs.qualify_database(statement.path)
    database = Database(name=name, comment=statement.comment, properties=dict(statement.options))
    context.catalogs.catalog(catalog).create_database(database, ignore_if_exists=statement.if_not_exists)
    return ok()


def alter_database(statement: s.AlterDatabase, context: SessionContext) -> TableResult:
    catalog, name = context.catalogs.qualify_database(statement.path)
    context.catalogs.catalog(catalog).alter_database(name, dict(statement.options))
    return ok()


def use_catalog(statement: s.UseCatalog, context: SessionContext) -> TableResult:
    context.catalogs.use_catalog(statement.name)
    return ok()


def use_database(statement: s.UseDatabase, context: SessionContext) -> TableResult:
    context.catalogs.use_database(*context.catalogs.qualify_database(statement.path))
    return ok()


def use_modules(statement: s.UseModules, context: SessionContext) -> TableResult:
    context.modules.use(statement.names)
    return ok()


def load_module(statement: s.LoadModule, context: SessionContext) -> TableResult:
    context.modules.load(statement.name, dict(statement.options))
    return ok()


def unload_module(statement: s.UnloadModule, context: SessionContext) -> TableResult:
    context.modules.unload(statement.name)
    return ok()


def create_function(statement: s.CreateFunction, context: SessionContext) -> TableResult:
    """Registers the name; a query that calls it says what is missing."""
    if statement.language == "SQL":
        raise NotSupportedError(
            "CREATE FUNCTION ... LANGUAGE SQL is not supported",
            position=statement.position,
            hint="Functions are Python: CREATE FUNCTION name AS 'module.attribute' LANGUAGE PYTHON.",
        )
    if statement.temporary and not statement.system and statement.language != "PYTHON":
        raise NotSupportedError(
            f"The class '{statement.identifier}' is not there: functions in {statement.language} are not "
            "supported",
            position=statement.position,
            hint="Functions are Python: CREATE FUNCTION name AS 'module.attribute' LANGUAGE PYTHON.",
        )
    path = None if statement.system else context.catalogs.qualify(statement.path)
    function = CatalogFunction(
        name=statement.path[-1],
        path=path,
        implementation=statement.identifier,
        language=statement.language,
        temporary=statement.temporary or statement.system,
    )
    context.catalogs.functions.create(function, ignore_if_exists=statement.if_not_exists)
    return ok()


def alter_function(statement: s.AlterFunction, context: SessionContext) -> TableResult:
    if statement.temporary:
        kind = "system" if statement.system else "catalog"
        raise ValidationError(
            f"Alter temporary {kind} function is not supported", position=statement.position
        )
    path = context.catalogs.qualify(statement.path)
    function = CatalogFunction(
        name=path.name, path=path, implementation=statement.identifier, language=statement.language
    )
    context.catalogs.functions.replace(function, ignore_if_missing=statement.if_exists)
    return ok()
