"""From JDBC URLs to SQLAlchemy engines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl

from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import NullPool

from tidemill.config.secrets import masked
from tidemill.errors import NotSupportedError, ValidationError

_NETWORK = re.compile(r"//(?P<host>[^:/?@]*)(?::(?P<port>\d+))?/(?P<database>[^?]*)(?:\?(?P<query>.*))?")
_DRIVERS = {"postgresql": "postgresql+psycopg", "sqlite": "sqlite"}
_FILES = ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "service", "sslkeylogfile")
"""libpq's parameters that are files, or name an entry of one."""
_PATIENCE = {"connect_timeout": 10, "tcp_user_timeout": 30_000}


def files_named(url: str) -> Iterator[str]:
    """The paths in a JDBC URL: an SQLite database, and what libpq is told of files and of sockets."""
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        yield rest
    for key, value in parse_qsl(rest.partition("?")[2]):
        if key in _FILES or value.startswith(("/", ".")):
            yield value


def patience(url: URL) -> dict[str, int]:
    """What a driver is told besides ``url``: of libpq, after how many seconds a server that takes connections
    and says nothing is given up, after how many milliseconds one that is cut off. What the URL says holds."""
    if url.drivername != _DRIVERS["postgresql"]:
        return {}
    return {key: value for key, value in _PATIENCE.items() if key not in url.query}


@dataclass(frozen=True)
class Database:
    """A place to connect to; pickled as its texts. ``dialect`` is postgresql or sqlite."""

    url: str = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def dialect(self) -> str:
        """NotSupportedError, naming the supported ones, for other databases."""
        prefix, _, rest = self.url.partition(":")
        name = rest.partition(":")[0]
        if prefix != "jdbc" or not name:
            raise ValidationError(
                f"'{self.redacted}' is not a JDBC URL such as jdbc:postgresql://host/database."
            )
        if name not in _DRIVERS:
            raise NotSupportedError(
                f"JDBC database '{name}' is not supported; supported are {sorted(_DRIVERS)}."
            )
        if name == "postgresql" and _NETWORK.fullmatch(self.url.split(":", 2)[2]) is None:
            raise ValidationError(
                f"'{self.redacted}' is not a JDBC URL such as jdbc:postgresql://host/database.",
                hint="A user and a password are options of their own: 'username' and 'password'.",
            )
        return name

    @property
    def redacted(self) -> str:
        """The URL for messages: without its query, which may hold a password."""
        return masked(self.url.partition("?")[0])

    @property
    def place(self) -> tuple[object, ...]:
        """Equal for URLs that name the same database and user in different words."""
        url = self._sqlalchemy_url()
        port = url.port or (5432 if self.dialect == "postgresql" else None)
        return (self.dialect, url.username, url.host, port, url.database)

    @property
    def file(self) -> str:
        """The path of a database that is a file."""
        return self.url.split(":", 2)[2]

    @cached_property
    def engine(self) -> Engine:
        """Connections are opened when needed and closed after use; nothing is shared between threads."""
        url = self._sqlalchemy_url()
        return create_engine(url, poolclass=NullPool, connect_args=patience(url))

    def __getstate__(self) -> dict[str, str | None]:
        return {"url": self.url, "user": self.user, "password": self.password}

    def _sqlalchemy_url(self) -> URL:
        driver = _DRIVERS[self.dialect]
        if self.dialect == "sqlite":
            return URL.create(driver, database=self.file)
        match = _NETWORK.fullmatch(self.url.split(":", 2)[2])
        assert match is not None  # as the dialect was asked for
        query = dict(parse_qsl(match["query"] or ""))
        user, password = query.pop("user", None), query.pop("password", None)
        return URL.create(
            driver,
            username=self.user or user,
            password=self.password or password,
            host=match["host"] or "localhost",
            port=int(match["port"]) if match["port"] else None,
            database=match["database"],
            query=query,
        )
