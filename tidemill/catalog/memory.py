"""One in-memory catalog: databases with the permanent tables, views and functions in them.

Names are case-sensitive, listings sorted. All of it lives as long as its session; catalogs that others share
derive from this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar

from tidemill.catalog.objects import CatalogFunction, CatalogModel
from tidemill.catalog.table import CatalogTable, CatalogView, ObjectPath
from tidemill.errors import ValidationError

TYPE = "generic_in_memory"


@dataclass(slots=True, kw_only=True)
class Database:
    """A namespace; ``tables`` holds tables and views, which share their names."""

    name: str
    comment: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    tables: MutableMapping[str, CatalogTable | CatalogView] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)
    models: dict[str, CatalogModel] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.tables or self.functions or self.models)


class InMemoryCatalog:
    """Flink's ``generic_in_memory`` catalog; it starts with its default database. Other kinds of catalogs
    derive from it: what changes one goes through its methods, each inside ``changing``.

    ``outlives``: what is in it is kept elsewhere than in the session; ``small``: all of it can be copied.
    """

    outlives: ClassVar[bool] = False
    small: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        default_database: str,
        *,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        self.name = name
        self.default_database = default_database
        self.options = dict(options or {})
        self.comment = comment
        self._databases = {default_database: Database(name=default_database)}

    @property
    def databases(self) -> Mapping[str, Database]:
        return self._databases

    def fill(self, databases: Iterable[Database]) -> None:
        """Instead of what it has."""
        self._databases = {database.name: database for database in databases}

    def changing(self) -> AbstractContextManager[None]:
        """Around each change: what is checked inside is so when the change is made."""
        return nullcontext()

    def refresh(self) -> None:
        """Before each statement: takes what others have changed."""

    def database(self, name: str) -> Database:
        """Raises ValidationError, in Flink's words, where there is no such database."""
        found = self.databases.get(name)
        if found is None:
            raise ValidationError(
                f"Database {name} does not exist in Catalog {self.name}.",
                expected=tuple(sorted(self.databases)),
            )
        return found

    def create_database(self, database: Database, *, ignore_if_exists: bool) -> None:
        with self.changing():
            if database.name not in self._databases:
                self._databases[database.name] = database
            elif not ignore_if_exists:
                raise ValidationError(f"Database {database.name} already exists in Catalog {self.name}.")

    def drop_database(self, name: str, *, ignore_if_missing: bool, cascade: bool) -> None:
        with self.changing():
            if ignore_if_missing and name not in self._databases:
                return
            if not self.database(name).is_empty and not cascade:
                raise ValidationError(
                    f"Database {name} in catalog {self.name} is not empty.",
                    hint="DROP DATABASE ... CASCADE also drops its contents.",
                )
            del self._databases[name]

    def alter_database(self, name: str, properties: Mapping[str, str]) -> None:
        with self.changing():
            self.database(name).properties.update(properties)

    def put(self, entry: CatalogTable | CatalogView, *, ignore_if_exists: bool) -> bool:
        """Adds a table or view; False where one was there and that is to be ignored."""
        with self.changing():
            return self._put(entry, ignore_if_exists)

    def _put(self, entry: CatalogTable | CatalogView, ignore_if_exists: bool) -> bool:
        database, name = entry.path.database, entry.path.name
        tables = self.database(database).tables
        if name not in tables:
            tables[name] = entry
            return True
        if ignore_if_exists:
            return False
        raise ValidationError(f"Table (or view) {database}.{name} already exists in Catalog {self.name}.")

    def replace(self, entry: CatalogTable | CatalogView) -> None:
        """Puts a changed table or view in the place of the one of its name."""
        with self.changing():
            self.database(entry.path.database).tables[entry.path.name] = entry

    def remove(self, path: ObjectPath) -> None:
        """A table or view; one that is gone is fine."""
        with self.changing():
            self.database(path.database).tables.pop(path.name, None)

    def rename(self, entry: CatalogTable | CatalogView, name: str) -> None:
        with self.changing():
            path = entry.path
            self._put(replace(entry, path=ObjectPath(path.catalog, path.database, name)), False)
            del self.database(path.database).tables[path.name]

    def put_function(self, function: CatalogFunction, database: str) -> bool:
        """False where there was one of that name: it stays."""
        with self.changing():
            functions = self.database(database).functions
            return functions.setdefault(function.name.lower(), function) is function

    def replace_function(self, function: CatalogFunction, database: str) -> bool:
        """Whether there was one of that name."""
        with self.changing():
            functions = self.database(database).functions
            found = function.name.lower() in functions
            if found:
                functions[function.name.lower()] = function
            return found

    def remove_function(self, database: str, name: str) -> bool:
        """Whether there was one."""
        with self.changing():
            return self.database(database).functions.pop(name, None) is not None
