"""The names of a session: catalogs, databases, tables and their columns, functions. Any thread may call."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.memory import InMemoryCatalog
from tidemill.catalog.table import CatalogFrame, CatalogObject, CatalogTable, CatalogView, Column, ObjectPath
from tidemill.errors import ValidationError
from tidemill.session import binding
from tidemill.session.context import SessionContext
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    path: ObjectPath
    is_view: bool
    comment: str = ""


@dataclass(frozen=True, slots=True)
class SessionCatalog:
    context: SessionContext

    @property
    def current(self) -> tuple[str, str]:
        """The current catalog and database."""
        return self.context.current_catalog, self.context.current_database

    def catalogs(self) -> list[str]:
        return sorted(self.context.catalogs.catalogs)

    def databases(self, catalog: str) -> list[str]:
        """The databases of a catalog. ValidationError if there is no such catalog."""
        return sorted(self.context.catalogs.catalog(catalog).databases)

    def tables(self, catalog: str, database: str) -> list[TableInfo]:
        """Tables and views, also temporary ones. ValidationError if there is no such database."""
        memory_catalog: InMemoryCatalog = self.context.catalogs.catalog(catalog)
        memory_catalog.database(database)
        names = self.context.names_within(catalog, database)
        paths = (ObjectPath(catalog, database, name) for name in names)
        entries = ((path, self.context.catalogs.find(path)) for path in paths)
        return [_info(path, entry) for path, entry in entries if entry is not None]

    def columns(self, path: ObjectPath) -> tuple[Column, ...]:
        """The columns of a table or view. ValidationError if it does not exist, or the view's query is
        invalid."""
        entry = self.context.catalogs.find(path)
        match entry:
            case CatalogTable():
                return entry.columns
            case CatalogView():
                return _columns(binding.view_fields(self.context, path))
            case CatalogFrame():
                return _columns(entry.fields)
        raise ValidationError(f"Tables or views with the identifier '{path}' doesn't exist.")

    def primary_key(self, path: ObjectPath) -> tuple[str, ...]:
        entry = self.context.catalogs.find(path)
        return entry.primary_key if isinstance(entry, CatalogTable) else ()

    def functions(self) -> list[str]:
        """The names of built-in and user functions."""
        return sorted({name.lower() for name in self.context.function_names()})


def _columns(fields: tuple[Field, ...]) -> tuple[Column, ...]:
    return tuple(Column(name=f.name, type=f.type) for f in fields)


def _info(path: ObjectPath, entry: CatalogObject) -> TableInfo:
    comment = "" if isinstance(entry, CatalogFrame) else entry.comment
    return TableInfo(path=path, is_view=not isinstance(entry, CatalogTable), comment=comment)
