"""The catalog of type ``savepoint``: the state in a savepoint as tables.

Its one database has a table for each table of an operator's state, and the listings. A statement sees the
savepoint as it was when the statement first looked at it. Cost: a read of the manifests a statement; of a
running job a savepoint a statement, which goes with the catalog.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import ClassVar

from tidemill.catalog.kinds import CatalogDescription
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.state_tables import connector, listings
from tidemill.runtime.state_tables.naming import operators_of
from tidemill.session.catalogs.of_savepoint import JOB, PATH, Look, Target
from tidemill.types.logical import Field

DATABASE = "state"
_LOOKS = 2
"""Savepoints of a job that are kept: rows of the statement before may still be on their way."""


class SavepointCatalog(InMemoryCatalog):
    """``look``: opens the savepoint that the catalog's options name, or makes one of a job; it may refuse.
    ``target``: where INSERT writes a new savepoint, '' where the session does not say."""

    outlives: ClassVar[bool] = True
    small: ClassVar[bool] = False

    def __init__(self, name: str, description: CatalogDescription, look: Look, target: Target) -> None:
        if (PATH in description.options) == (JOB in description.options):
            raise ValidationError(f"Catalog '{name}' needs either the option '{PATH}' or the option '{JOB}'.")
        super().__init__(name, DATABASE, options=description.options, comment=description.comment)
        self._look = look
        self._target = target
        self._looks: list[Callable[[], object]] = []
        self._seen = StateDatabase(self._tables)

    @property
    def databases(self) -> Mapping[str, Database]:
        return self._seen

    def refresh(self) -> None:
        self._seen = StateDatabase(self._tables)

    def changing(self) -> AbstractContextManager[None]:
        raise NotSupportedError(
            f"Catalog '{self.name}' is a savepoint: changes of it are not supported",
            hint="Create the table in another catalog.",
        )

    def _tables(self) -> dict[str, CatalogTable]:
        savepoint = self._look(self.options)
        if JOB in self.options:
            self._looks.append(weakref.finalize(self, savepoint.remove))
            for remove in self._looks[:-_LOOKS]:
                remove()
            del self._looks[:-_LOOKS]
        fields = dict(connector.ABOUT)
        for operator in operators_of(savepoint):
            for table in operator.tables:
                fields[table.name] = tuple(Field(c.name, c.type) for c in table.columns)
        return {name: self._table(name, columns, savepoint.storage) for name, columns in fields.items()}

    def _table(self, name: str, fields: tuple[Field, ...], storage: Storage) -> CatalogTable:
        options = {
            "connector": connector.CONNECTOR.identifier,
            connector.PATH: storage.location,
            connector.TABLE: name,
            **({connector.TARGET: target} if (target := self._target()) else {}),
            **dict(storage.settings),
        }
        columns = tuple(Column(name=f.name, type=f.type) for f in fields)
        return CatalogTable(path=ObjectPath(self.name, DATABASE, name), columns=columns, options=options)


def metadata_table(storage: Storage) -> CatalogTable:
    """What the table function ``savepoint_metadata`` gives of the savepoint there."""
    options = {
        "connector": connector.CONNECTOR.identifier,
        connector.PATH: storage.location,
        connector.TABLE: listings.METADATA,
        **dict(storage.settings),
    }
    fields = listings.FUNCTIONS[listings.METADATA].fields
    columns = tuple(Column(name=f.name, type=f.type) for f in fields)
    return CatalogTable(
        path=ObjectPath("system", "state", listings.METADATA), columns=columns, options=options
    )


class StateDatabase(Mapping[str, Database]):
    """The one database. ``tables``: nothing is read before somebody asks what is in it."""

    def __init__(self, tables: Callable[[], dict[str, CatalogTable]]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> Database:
        if name != DATABASE:
            raise KeyError(name)
        return self._database

    def __iter__(self) -> Iterator[str]:
        return iter((DATABASE,))

    def __len__(self) -> int:
        return 1

    @cached_property
    def _database(self) -> Database:
        return Database(name=DATABASE, tables=dict(self._tables()))
