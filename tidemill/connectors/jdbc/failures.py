"""What a database said, in Tidemill's terms: which database, which table, what was wrong with which row."""

from __future__ import annotations

import sqlite3

import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tidemill.config.secrets import masked
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError

DATABASE_ERRORS = (SQLAlchemyError, psycopg.Error)
_FLEETING = (psycopg.OperationalError, sqlite3.OperationalError)


def is_fleeting(error: Exception) -> bool:
    """Whether the same may succeed later: the database is down, busy or out of something."""
    return isinstance(_cause(error), _FLEETING)


def failure(error: Exception, database: Database, table: str, epoch: int | None = None) -> ConnectorError:
    """``epoch``: whose rows were being applied."""
    cause = _cause(error)
    text = str(cause).strip()
    place = "" if epoch is None else f", epoch {epoch}"
    reason = masked(text.splitlines()[0]) if text else type(cause).__name__
    return ConnectorError(
        f"Database {database.redacted}, table '{table}'{place}: {reason}", hint=_circumstances(cause)
    )


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _circumstances(cause: BaseException) -> str:
    """The row and the constraint, where the server tells them."""
    if not isinstance(cause, psycopg.Error):
        return ""
    diagnosis = cause.diag
    copied = diagnosis.context if (diagnosis.context or "").startswith("COPY") else None
    named = f"Constraint: {diagnosis.constraint_name}." if diagnosis.constraint_name else None
    return "\n".join(part for part in (diagnosis.message_detail, named, copied) if part)
