"""Catalogs that a connector brings: their databases and tables lie in an outside system.

Every look asks that system: nothing is kept. Views and functions are not kept there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import ClassVar

from tidemill.catalog.kinds import DEFAULT_DATABASE, CatalogDescription, CatalogKind
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.catalog.table import CatalogTable, CatalogView, ObjectPath
from tidemill.connectors.api import CatalogConnector, OutsideTables
from tidemill.connectors.registry import connector
from tidemill.errors import InternalError, NotSupportedError, ValidationError

Entry = CatalogTable | CatalogView
Check = Callable[[str, Mapping[str, str]], None]
"""NotPermittedError where a connector with these options is not for the session."""


class OutsideCatalog(InMemoryCatalog):
    """``found``: asked whenever the catalog is looked at; it may refuse."""

    outlives: ClassVar[bool] = True
    small: ClassVar[bool] = False

    def __init__(
        self, name: str, description: CatalogDescription, found: Callable[[], OutsideTables]
    ) -> None:
        default = description.options.get(DEFAULT_DATABASE, "default")
        super().__init__(name, default, options=description.options, comment=description.comment)
        self._found = found

    @property
    def databases(self) -> Mapping[str, Database]:
        return _Databases(self._found(), self.default_database)

    def changing(self) -> AbstractContextManager[None]:
        raise NotSupportedError(
            f"This change of catalog '{self.name}' of type '{self.options['type']}'",
            hint="Databases and tables there can be created, dropped and renamed.",
        )

    def create_database(self, database: Database, *, ignore_if_exists: bool) -> None:
        if not (ignore_if_exists and database.name in self._found().databases()):
            self._found().create_database(database.name)

    def drop_database(self, name: str, *, ignore_if_missing: bool, cascade: bool) -> None:
        if name not in self._found().databases():
            if ignore_if_missing:
                return
            self.database(name)
        for table in self._found().tables(name) if cascade else ():
            self._found().drop(name, table)
        self._found().drop_database(name)

    def put(self, entry: CatalogTable | CatalogView, *, ignore_if_exists: bool) -> bool:
        path = entry.path
        if not isinstance(entry, CatalogTable):
            raise NotSupportedError(f"Views in catalog '{self.name}' of type '{self.options['type']}'")
        if self.database(path.database).tables.get(path.name) is None:
            self._found().create(entry)
            return True
        if ignore_if_exists:
            return False
        raise ValidationError(
            f"Table (or view) {path.database}.{path.name} already exists in Catalog {self.name}."
        )

    def remove(self, path: ObjectPath) -> None:
        self._found().drop(path.database, path.name)

    def rename(self, entry: CatalogTable | CatalogView, name: str) -> None:
        self._found().rename(entry.path.database, entry.path.name, name)


class _Databases(Mapping[str, Database]):
    """``default``: one that is there, even before it has a table."""

    def __init__(self, found: OutsideTables, default: str) -> None:
        self._found = found
        self._default = default

    def __getitem__(self, name: str) -> Database:
        if name not in self._names:
            raise KeyError(name)
        return Database(name=name, tables=_Tables(self._found, name, is_there=name in self._there))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @cached_property
    def _there(self) -> list[str]:
        return self._found.databases()

    @property
    def _names(self) -> set[str]:
        return {*self._there, self._default}


class _Tables(MutableMapping[str, Entry]):
    """The tables of a database, looked at when they are asked for; the catalog changes them."""

    def __init__(self, found: OutsideTables, database: str, *, is_there: bool) -> None:
        self._found = found
        self._database = database
        self._is_there = is_there

    def __getitem__(self, name: str) -> Entry:
        found = self._found.table(self._database, name) if self._is_there else None
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, entry: Entry) -> None:
        raise InternalError(f"table {name} is not put into an outside catalog so")

    def __delitem__(self, name: str) -> None:
        raise InternalError(f"table {name} is not taken out of an outside catalog so")

    def __iter__(self) -> Iterator[str]:
        return iter(self._found.tables(self._database) if self._is_there else ())

    def __len__(self) -> int:
        return len(list(iter(self)))


def outside_catalogs(identifier: str, check: Check) -> CatalogKind:
    """Of the connector that ``identifier`` names."""

    def found(name: str, description: CatalogDescription) -> OutsideTables:
        made = connector({"connector": identifier})
        assert isinstance(made, CatalogConnector)
        options = made.catalog_options(description.options)
        check(identifier, options)
        return made.catalog(name, options)

    return CatalogKind(
        options=(DEFAULT_DATABASE,),
        takes_others=True,
        make=lambda name, description: OutsideCatalog(name, description, lambda: found(name, description)),
    )
