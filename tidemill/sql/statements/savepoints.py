"""Savepoints: statements of Tidemill's own. Flink has only STOP JOB ... WITH SAVEPOINT."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import Position
from tidemill.sql.statements.base import Statement
from tidemill.sql.statements.queries import Insert, StatementSet


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSavepoint(Statement):
    """CREATE SAVEPOINT ['path'] FOR JOB 'id'; ``path`` is '' if the savepoint gets a name of its own."""

    job_id: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """The rows of a table of state; ``columns``: those that the query gives, () for what it calls them."""

    table: str
    columns: tuple[str, ...]
    query: exp.Expression
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSavepoint(Statement):
    """CREATE SAVEPOINT 'path' FOR INSERT ... WITH STATE (table AS query, ...)."""

    path: str
    target: Insert | StatementSet
    tables: tuple[StateQuery, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSavepoints(Statement):
    """SHOW SAVEPOINTS [IN 'directory']."""

    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSavepoint(Statement):
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSavepoint(Statement):
    """DIFF SAVEPOINT 'first' WITH 'second'."""

    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSavepoint(Statement):
    path: str
    if_exists: bool = False
