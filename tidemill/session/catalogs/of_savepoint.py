"""The catalog of type ``savepoint``: the state in a savepoint as tables, for queries alone.

Its one database has a table for each table of an operator's state, and the listings. A statement sees the
savepoint as it was when the statement first looked at it. Cost: a read of the manifests a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from tidemill.catalog.kinds import CatalogDescription, CatalogKind
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.catalog.table import CatalogTable, Column, ObjectPath
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.state_tables import connector
from tidemill.runtime.state_tables.listings import LISTINGS
from tidemill.runtime.state_tables.naming import operators_of
from tidemill.types.logical import Field

TYPE = "savepoint"
PATH = "path"
DATABASE = "state"

Place = Callable[[Mapping[str, str]], Storage]


class SavepointCatalog(InMemoryCatalog):
    """``place``: where the savepoint is, of the catalog's options; it may refuse."""

    outlives: ClassVar[bool] = True
    small: ClassVar[bool] = False

    def __init__(self, name: str, description: CatalogDescription, place: Place) -> None:
        if PATH not in description.options:
            raise ValidationError(f"Catalog '{name}' needs the option '{PATH}'.")
        super().__init__(name, DATABASE, options=description.options, comment=description.comment)
        self._place = place
        self._seen: dict[str, Database] = {}

    @property
    def databases(self) -> Mapping[str, Database]:
        if not self._seen:
            self._seen = {DATABASE: Database(name=DATABASE, tables=dict(self._tables()))}
        return self._seen

    def refresh(self) -> None:
        self._seen = {}

    def changing(self) -> AbstractContextManager[None]:
        raise NotSupportedError(
            f"Catalog '{self.name}' is a savepoint: changes of it are not supported",
            hint="Create the table in another catalog.",
        )

    def _tables(self) -> dict[str, CatalogTable]:
        storage = self._place(self.options)
        fields = {name: listing.fields for name, listing in LISTINGS.items()}
        for operator in operators_of(Savepoint.open(storage)):
            for table in operator.tables:
                fields[table.name] = tuple(Field(c.name, c.type) for c in table.columns)
        return {name: self._table(name, columns, storage) for name, columns in fields.items()}

    def _table(self, name: str, fields: tuple[Field, ...], storage: Storage) -> CatalogTable:
        options = {
            "connector": connector.CONNECTOR.identifier,
            connector.PATH: storage.location,
            connector.TABLE: name,
            **dict(storage.settings),
        }
        columns = tuple(Column(name=f.name, type=f.type) for f in fields)
        return CatalogTable(path=ObjectPath(self.name, DATABASE, name), columns=columns, options=options)


def savepoint_catalogs(place: Place) -> CatalogKind:
    return CatalogKind(
        options=(PATH, *SETTINGS), make=lambda name, found: SavepointCatalog(name, found, place)
    )
