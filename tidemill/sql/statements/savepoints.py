"""Savepoints: statements of Tidemill's own. Flink has only STOP JOB ... WITH SAVEPOINT."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.sql.statements.base import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSavepoint(Statement):
    """CREATE SAVEPOINT ['path'] FOR JOB 'id'; ``path`` is '' where the savepoint gets a name of its own."""

    job_id: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSavepoints(Statement):
    """SHOW SAVEPOINTS [IN 'directory']."""

    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSavepoint(Statement):
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSavepoint(Statement):
    path: str
    if_exists: bool = False
