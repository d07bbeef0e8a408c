"""The exceptions of PEP 249, and which of them an error of the gateway's is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.client.gateway_client import GatewayError
from tidemill.errors import ExecutionError, TidemillError


class Warning(Exception):
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


_BY_CAUSE: tuple[tuple[str, type[DatabaseError]], ...] = (
    ("ParseException", ProgrammingError),
    ("SqlParserException", ProgrammingError),
    ("ValidationException", ProgrammingError),
    ("UnsupportedOperationException", NotSupportedError),
    ("NumberFormatException", DataError),
)


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the client as those of PEP 249."""
    try:
        yield
    except GatewayError as e:
        kind = next((kind for name, kind in _BY_CAUSE if name in e.cause), OperationalError)
        raise kind(str(e)) from e
    except ExecutionError as e:
        raise DataError(str(e)) from e
    except TidemillError as e:
        raise OperationalError(str(e)) from e
