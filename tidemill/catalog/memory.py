"""One in-memory catalog: databases with the permanent tables, views and functions in them.

Names are case-sensitive, listings sorted. All of it lives as long as its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemill.catalog.function import CatalogFunction
from tidemill.catalog.table import CatalogTable, CatalogView
from tidemill.errors import ValidationError

TYPE = "generic_in_memory"


@dataclass(slots=True, kw_only=True)
class Database:
    """A namespace; ``tables`` holds tables and views, which share their names."""

    name: str
    comment: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    tables: dict[str, CatalogTable | CatalogView] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.tables and not self.functions


class InMemoryCatalog:
    """Flink's ``generic_in_memory`` catalog; it starts with its default database."""

    def __init__(
        self,
        name: str,
        default_database: str,
        *,
        options: Mapping[str, str] | None = None,
        comment: str = "",
    ) -> None:
        self.name = name
        self.default_database = default_database
        self.options = dict(options or {})
        self.comment = comment
        self.databases = {default_database: Database(name=default_database)}

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
        if database.name not in self.databases:
            self.databases[database.name] = database
        elif not ignore_if_exists:
            raise ValidationError(f"Database {database.name} already exists in Catalog {self.name}.")

    def drop_database(self, name: str, *, ignore_if_missing: bool, cascade: bool) -> None:
        if ignore_if_missing and name not in self.databases:
            return
        if not self.database(name).is_empty and not cascade:
            raise ValidationError(
                f"Database {name} in catalog {self.name} is not empty.",
                hint="DROP DATABASE ... CASCADE drops what is in it, too.",
            )
        del self.databases[name]

    def put(self, entry: CatalogTable | CatalogView, *, ignore_if_exists: bool) -> bool:
        """Adds a table or view; False where one was there and that is to be ignored."""
        tables = self.database(entry.path.database).tables
        if entry.path.name not in tables:
            tables[entry.path.name] = entry
            return True
        if ignore_if_exists:
            return False
        raise ValidationError(
            f"Table (or view) {entry.path.database}.{entry.path.name} already exists in Catalog {self.name}."
        )

    def replace(self, entry: CatalogTable | CatalogView) -> None:
        """Puts a changed table or view in the place of the one of its name."""
        self.database(entry.path.database).tables[entry.path.name] = entry
