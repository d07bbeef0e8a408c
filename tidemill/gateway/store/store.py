"""The gateway's memory over restarts: an SQLite file, or any database by URL (PostgreSQL).

What a client has been told is in the store before it is told: a killed gateway, started again, knows it.
SQLite is not asked to wait for the disk: what was written outlives the process, not a loss of power.
Cost: a row for each statement that is submitted, and a change when it ends; under load one transaction has
those of many.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import sqlalchemy as sa

from tidemill.config.seal import PLAIN, Seal
from tidemill.errors import StateError
from tidemill.gateway.store.writer import Connection, Rows, Write, Writer
from tidemill.session.catalogs.database import engine, said

VERSION = 1
METADATA = sa.MetaData()
VERSIONS = sa.Table("tidemill_gateway", METADATA, sa.Column("version", sa.Integer, nullable=False))
SESSIONS = sa.Table(
    "tidemill_sessions",
    METADATA,
    sa.Column("handle", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("opened", sa.BigInteger, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),
)
OPERATIONS = sa.Table(
    "tidemill_operations",
    METADATA,
    sa.Column("handle", sa.String(36), primary_key=True),
    sa.Column("session", sa.String(36), nullable=False, index=True),
    sa.Column("submitted", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("result", sa.Text),
)
HISTORIES = sa.Table(
    "tidemill_job_histories",
    METADATA,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
)
JOBS = sa.Table(
    "tidemill_jobs",
    METADATA,
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("job_id", sa.String(32), nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("started", sa.BigInteger, nullable=False),
    sa.Column("ended", sa.BigInteger),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("statements", sa.Text, nullable=False),
    sa.Column("snapshot", sa.Text, nullable=False),
)


Json = dict[str, Any]
_WHAT = "The gateway's store"
_HINT = "Running statements continue, but the gateway takes no new requests until the store works again."
_ADD = OPERATIONS.insert()
_END = (
    OPERATIONS.update()
    .where(OPERATIONS.c.handle == sa.bindparam("ended"))
    .values({name: sa.bindparam(name) for name in ("status", "error", "result")})
)
_REMOVE = OPERATIONS.delete().where(OPERATIONS.c.handle == sa.bindparam("removed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSession:
    handle: str
    name: str
    owner: str
    opened: dt.datetime
    snapshot: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOperation:
    """``error``: code and text. ``result``: what ``ResultInfo`` has, and the folder of its pages."""

    handle: str
    session: str
    submitted: dt.datetime
    status: str
    error: Json | None = None
    result: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptJob:
    """``place``: its checkpoint directory. ``statements`` start it again in a session of ``snapshot``."""

    place: str
    job_id: str
    name: str
    owner: str
    started: dt.datetime
    status: str
    statements: list[str]
    snapshot: Json
    ended: dt.datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """Any thread may call. StateError where the database is down, read-only, or of a newer version. What
    gives a future returns at once: it is in the store when that is done. ``seal``: for what holds secrets."""

    engine: sa.Engine
    seal: Seal = PLAIN
    _writer: Writer = field(init=False)
    _connection: Connection = field(init=False)
    """Of who writes: one at a time."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_connection", Connection(self.engine))
        object.__setattr__(self, "_writer", Writer(self._writing, (_ADD, _END, _REMOVE)))

    @classmethod
    def open(cls, url: str, seal: Seal = PLAIN) -> Self:
        """Makes what is not there yet."""
        made = cls(engine(url, _WHAT), seal)
        try:
            made._prepare()
        except BaseException:
            made.close()
            raise
        return made

    def _prepare(self) -> None:
        """A store that can be read alone is noticed here: something is written in any case."""
        with said(self.engine, _WHAT), self._connection.transaction() as connection:
            METADATA.create_all(connection)
            found = connection.execute(sa.select(VERSIONS.c.version)).scalar()
            if found is None:
                connection.execute(VERSIONS.insert().values(version=VERSION))
            elif found != VERSION:
                where = self.engine.url.render_as_string(hide_password=True)
                raise StateError(
                    f"The gateway's store '{where}' has version {found}; this gateway reads {VERSION}",
                    hint="Start the version that wrote it, or name another store.",
                )
            else:
                connection.execute(VERSIONS.update().values(version=VERSION))

    def close(self) -> None:
        self._writer.close()
        self._connection.close()
        self.engine.dispose()

    # -- sessions

    def put_session(self, session: KeptSession) -> None:
        """Adds a session, or takes down how it is now."""
        row = {
            "handle": session.handle,
            "name": session.name,
            "owner": session.owner,
            "opened": _millis(session.opened),
            "snapshot": self._closed(session.snapshot),
        }

        def write(connection: sa.Connection) -> None:
            mine = SESSIONS.c.handle == row["handle"]
            changed = connection.execute(SESSIONS.update().where(mine).values(snapshot=row["snapshot"]))
            if not changed.rowcount:
                connection.execute(SESSIONS.insert().values(row))

        self._put(write)

    def remove_session(self, handle: str) -> None:
        """With its operations."""
        self._execute(
            OPERATIONS.delete().where(OPERATIONS.c.session == handle),
            SESSIONS.delete().where(SESSIONS.c.handle == handle),
        )

    def sessions(self) -> list[KeptSession]:
        with self._reading() as connection:
            rows = connection.execute(SESSIONS.select().order_by(SESSIONS.c.opened)).mappings().all()
        return [
            KeptSession(**{**row, "opened": _time(row["opened"]), "snapshot": self._opened(row["snapshot"])})
            for row in rows
        ]

    # -- operations

    def add_operation(self, operation: KeptOperation) -> Future[None]:
        return self._writer.put(Rows(_ADD, (_operation_row(operation),)))

    def end_operation(self, handle: str, status: str, error: Json | None, result: Json | None) -> None:
        values = {"status": status, "error": _dumped(error), "result": _dumped(result)}
        self._put(Rows(_END, ({"ended": handle, **values},)))

    def remove_operation(self, handle: str) -> Future[None]:
        """A moment later."""
        return self._writer.put(Rows(_REMOVE, ({"removed": handle},)), later=True)

    def operations(self) -> list[KeptOperation]:
        """In the order in which they were submitted."""
        with self._reading() as connection:
            rows = connection.execute(OPERATIONS.select().order_by(OPERATIONS.c.submitted)).mappings().all()
        return [
            KeptOperation(
                **{
                    **row,
                    "submitted": _time(row["submitted"]),
                    "error": _loaded(row["error"]),
                    "result": _loaded(row["result"]),
                }
            )
            for row in rows
        ]

    # -- jobs

    def put_job(self, job: KeptJob) -> None:
        """Adds a job, or takes down how it is now."""
        row = {
            "place": job.place,
            "job_id": job.job_id,
            "name": job.name,
            "owner": job.owner,
            "started": _millis(job.started),
            "ended": None if job.ended is None else _millis(job.ended),
            "status": job.status,
            "error": job.error,
            "statements": self._closed(job.statements),
            "snapshot": self._closed(job.snapshot),
        }
        self._execute(JOBS.delete().where(JOBS.c.place == job.place), JOBS.insert().values(row))

    def end_job(self, place: str, status: str, ended: dt.datetime, error: str | None) -> None:
        values = {"status": status, "ended": _millis(ended), "error": error}
        self._execute(JOBS.update().where(JOBS.c.place == place).values(values))

    def remove_job(self, place: str) -> None:
        self._execute(
            JOBS.delete().where(JOBS.c.place == place), HISTORIES.delete().where(HISTORIES.c.place == place)
        )

    def put_history(self, place: str, document: Json) -> None:
        """What was seen of a job, instead of what was kept of it before."""
        text = json.dumps(document)

        def write(connection: sa.Connection) -> None:
            mine = HISTORIES.c.place == place
            if not connection.execute(HISTORIES.update().where(mine).values(document=text)).rowcount:
                connection.execute(HISTORIES.insert().values(place=place, document=text))

        self._put(write)

    def history(self, place: str) -> Json | None:
        with self._reading() as connection:
            found = connection.execute(
                sa.select(HISTORIES.c.document).where(HISTORIES.c.place == place)
            ).scalar()
        kept: Json | None = _loaded(found)
        return kept

    def jobs(self) -> list[KeptJob]:
        """In the order in which they were started."""
        with self._reading() as connection:
            rows = connection.execute(JOBS.select().order_by(JOBS.c.started)).mappings().all()
        return [
            KeptJob(
                **{
                    **row,
                    "started": _time(row["started"]),
                    "ended": None if row["ended"] is None else _time(row["ended"]),
                    "statements": self._opened(row["statements"]),
                    "snapshot": self._opened(row["snapshot"]),
                }
            )
            for row in rows
        ]

    def _closed(self, document: Any) -> str:
        return self.seal.close(json.dumps(document))

    def _opened(self, text: str) -> Any:
        return json.loads(self.seal.open(text))

    def _execute(self, *statements: sa.Executable) -> None:
        def write(connection: sa.Connection) -> None:
            for statement in statements:
                connection.execute(statement)

        self._put(write)

    def _put(self, write: Write) -> None:
        self._writer.write(write)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with said(self.engine, _WHAT, _HINT), self._connection.transaction() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with said(self.engine, _WHAT, _HINT), self.engine.connect() as connection:
            yield connection


def moved(operation: KeptOperation, status: str, reason: str) -> KeptOperation:
    """The operation, ended for a reason of the gateway's own."""
    return replace(operation, status=status, error={"code": "GATEWAY", "message": reason}, result=None)


def _operation_row(operation: KeptOperation) -> dict[str, Any]:
    return {
        "handle": operation.handle,
        "session": operation.session,
        "submitted": _millis(operation.submitted),
        "status": operation.status,
        "error": _dumped(operation.error),
        "result": _dumped(operation.result),
    }


def _dumped(value: Json | None) -> str | None:
    return None if value is None else json.dumps(value)


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _millis(time: dt.datetime) -> int:
    return int(time.timestamp() * 1000)


def _time(millis: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC)
