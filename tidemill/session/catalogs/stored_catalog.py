"""The catalog of type ``stored``: kept in a database, the same for all sessions that name it.

A catalog is one row: its version, and all that is in it as JSON. A change takes the row's lock, reads what
others have changed since, and writes the row; so changes follow one another, and none is lost. A statement
sees the catalog as it was when the statement began to use it. Cost: a query for the version a statement, the
whole row when it has changed, and for each change.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import ClassVar

import sqlalchemy as sa

from tidemill.catalog.kinds import DEFAULT_DATABASE, CatalogDescription
from tidemill.catalog.memory import Database, InMemoryCatalog
from tidemill.session.catalogs.database import database_files, engine, said
from tidemill.session.catalogs.documents import database_document, restored_databases
from tidemill.session.catalogs.locations import URL, Place, Placed

_WHAT = "The catalogs' database"
_METADATA = sa.MetaData()
_CATALOGS = sa.Table(
    "tidemill_catalogs",
    _METADATA,
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)
_UNKNOWN = -1


class StoredCatalog(InMemoryCatalog):
    """``placed``: asked whenever the catalog is looked at; it may refuse."""

    outlives: ClassVar[bool] = True

    def __init__(self, name: str, description: CatalogDescription, placed: Placed) -> None:
        default = description.options.get(DEFAULT_DATABASE, "default")
        super().__init__(name, default, options=description.options, comment=description.comment)
        self._placed = placed
        self._url = description.options.get(URL, "")
        self._version = _UNKNOWN
        self._fresh = False
        self._prepared = False
        # Others look into a session's catalogs while its statement changes one of them.
        self._lock = threading.RLock()

    def _place(self) -> Place:
        return self._placed(self._url, database_files(self._url))

    @property
    def databases(self) -> Mapping[str, Database]:
        if not self._fresh:
            with self._lock:
                self._read()
        return self._databases

    def refresh(self) -> None:
        self._fresh = False

    @contextmanager
    def changing(self) -> Iterator[None]:
        database = self._database()
        mine = _CATALOGS.c.name == self.name
        with self._lock, said(database, _WHAT), database.connect() as connection:
            self._add(connection)
            try:
                # The row's lock comes first: nobody else changes it until the end.
                connection.execute(_CATALOGS.update().where(mine).values(version=_CATALOGS.c.version + 1))
                version, document = connection.execute(
                    sa.select(_CATALOGS.c.version, _CATALOGS.c.document).where(mine)
                ).one()
                self._take(version - 1, document)
                yield
                connection.execute(_CATALOGS.update().where(mine).values(document=self._document()))
                connection.commit()
                self._version = version
            except BaseException:
                self._version, self._fresh = _UNKNOWN, False
                raise

    def _read(self) -> None:
        database = self._database()
        mine = _CATALOGS.c.name == self.name
        with said(database, _WHAT), database.connect() as connection:
            version = connection.execute(sa.select(_CATALOGS.c.version).where(mine)).scalar()
            if version is not None and version != self._version:
                found = sa.select(_CATALOGS.c.version, _CATALOGS.c.document).where(mine)
                self._take(*connection.execute(found).one())
        self._fresh = True

    def _database(self) -> sa.Engine:
        """With the table in it."""
        found = _engine(self._place().url)
        if not self._prepared:
            with said(found, _WHAT):
                try:
                    _METADATA.create_all(found)
                except sa.exc.DBAPIError:
                    _METADATA.create_all(found)  # another session has made the table in between
            self._prepared = True
        return found

    def _take(self, version: int, document: str) -> None:
        if version != self._version:
            kept = json.loads(self._place().seal.open(document))
            self.fill(restored_databases(kept, f"catalog '{self.name}'"))
            self._version = version
        self._fresh = True

    def _add(self, connection: sa.Connection) -> None:
        """The row, if nobody has added it."""
        known = sa.select(_CATALOGS.c.name).where(_CATALOGS.c.name == self.name)
        if connection.execute(known).first() is not None:
            return
        with suppress(sa.exc.IntegrityError):
            connection.execute(
                _CATALOGS.insert().values(name=self.name, version=0, document=self._document())
            )
            connection.commit()
            return
        connection.rollback()

    def _document(self) -> str:
        return self._place().seal.close(json.dumps([database_document(d) for d in self._databases.values()]))


@cache
def _engine(url: str) -> sa.Engine:
    return engine(url, _WHAT, pooled=False)
