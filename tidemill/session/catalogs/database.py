"""The databases that Tidemill keeps its own things in: an SQLite file, or any by URL (PostgreSQL).

SQLite is not asked to wait for the disk: what was written outlives the process, not a loss of power.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from tidemill.config.secrets import masked
from tidemill.connectors.jdbc.urls import files_named, patience
from tidemill.errors import StateError

_END_OF_PATH = re.compile(r"[?#]")


def database_files(url: str) -> Iterator[str]:
    """The paths in the URL of a database; none in what is no URL."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        return
    if parsed.get_backend_name() == "sqlite":
        named = parsed.database or ""
        yield named
        if named.startswith("file:"):  # SQLite's own URI: its path ends where a query or a fragment begins
            yield _END_OF_PATH.split(named, maxsplit=1)[0]
    else:
        yield from files_named(url)


def engine(url: str, what: str, *, pooled: bool = True) -> sa.Engine:
    """Of ``url``; ``what`` stands for it in messages. The folder of an SQLite file that is named by its
    path is made. ``pooled``: connections stay open between uses. StateError."""
    pool = {} if pooled else {"poolclass": sa.NullPool}
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "postgresql" and parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() != "sqlite":
            return sa.create_engine(parsed, pool_pre_ping=True, connect_args=patience(parsed), **pool)
    except (sa.exc.ArgumentError, ModuleNotFoundError) as e:
        raise StateError(f"'{masked(url)}' is not the URL of a usable database: {e}") from e
    if parsed.database and not parsed.database.startswith("file:"):  # a URI of SQLite's own
        try:
            os.makedirs(os.path.dirname(os.path.abspath(parsed.database)), mode=0o700, exist_ok=True)
        except OSError as e:
            raise StateError(f"{what} '{url}' cannot be used: {e.strerror or e}") from e
    made = sa.create_engine(parsed, connect_args={"timeout": 30, "check_same_thread": False}, **pool)
    sa.event.listen(made, "connect", _prepare_sqlite)
    return made


def _prepare_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def said(database: sa.Engine, what: str, hint: str = "") -> Iterator[None]:
    """What is wrong with a database as a StateError."""
    try:
        yield
    except sa.exc.SQLAlchemyError as e:
        cause = getattr(e, "orig", None) or e
        where = database.url.render_as_string(hide_password=True)
        raise StateError(f"{what} '{where}' cannot be used: {cause}", hint=hint) from e
