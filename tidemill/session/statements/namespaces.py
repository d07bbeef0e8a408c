"""Catalogs and databases: CREATE, ALTER, USE; and CREATE FUNCTION, which puts a name into one."""

from __future__ import annotations

from tidemill.catalog.function import CatalogFunction
from tidemill.catalog.memory import Database
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.sql import statements as s

MODULES = ("core",)


def create_catalog(statement: s.CreateCatalog, context: SessionContext) -> TableResult:
    context.catalogs.create_catalog(
        statement.name,
        dict(statement.options),
        comment=statement.comment,
        ignore_if_exists=statement.if_not_exists,
    )
    return ok()


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
    for name in statement.names:
        if name not in MODULES:
            raise ValidationError(f"No module with name '{name}' exists", expected=MODULES)
    return ok()


def create_function(statement: s.CreateFunction, context: SessionContext) -> TableResult:
    """Registers the name; a query that calls it says what is missing."""
    if statement.language != "PYTHON":
        raise NotSupportedError(
            f"CREATE FUNCTION ... LANGUAGE {statement.language} is not supported",
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
