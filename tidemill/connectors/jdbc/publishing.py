"""One transaction for an epoch's rows of all sinks of a group.

1. Each sink whose epoch the database has not recorded yet applies its files.
2. It records the epoch beside them.
3. COMMIT. When the connection goes away in the middle of it the outcome is not known: the next try
   finds the epoch recorded, or applies it.

A database that cannot be reached is tried again until ``patience`` is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from sqlalchemy import Connection

from tidemill.connectors.jdbc import epochs
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure, is_fleeting
from tidemill.connectors.jdbc.postgres import PostgresWriter
from tidemill.connectors.jdbc.sqlite import SqliteWriter
from tidemill.connectors.jdbc.staging import RowsFormat
from tidemill.connectors.jdbc.target import TargetTable
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.files.storage import Storage

_PAUSE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles:
    """What one task staged: at most one file each, no key in both."""

    upserts: list[str]
    deletes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One sink's share. ``ordered``: the changes of a later task are later; else a key is in two tasks
    only where its row moved, as a delete in one and an upsert in the other."""

    name: str
    target: TargetTable
    staging: Storage
    directory: str
    tasks: list[TaskFiles]
    ordered: bool

    def steps(self) -> Iterator[TaskFiles]:
        """Deletes, then upserts, of each step."""
        if not self.ordered:
            deletes = list(chain.from_iterable(task.deletes for task in self.tasks))
            yield TaskFiles(upserts=[], deletes=deletes)
        for task in self.tasks:
            yield task if self.ordered else TaskFiles(upserts=task.upserts, deletes=[])


@dataclass(slots=True, kw_only=True)
class Publication:
    """``patience`` in seconds."""

    database: Database
    epoch: int
    parts: list[Part]
    patience: float
    _at: str = ""
    _committing: bool = False
    _unknown: bool = False

    def run(self) -> None:
        """ConnectorError when the database refuses the rows or cannot be reached; CommitUnknownError
        when it went away during COMMIT and did not come back."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._attempt()
                return
            except DATABASE_ERRORS as e:
                self._unknown = self._unknown or self._committing
                if not is_fleeting(e) or time.monotonic() >= deadline:
                    raise self._given_up(e) from None
                time.sleep(_PAUSE)
            except OSError as e:
                raise ConnectorError(
                    f"The staged rows of epoch {self.epoch} for '{self._at}' are gone: {e}",
                    hint="Set 'sink.staging-path' to a directory that outlives the machine's restarts.",
                ) from None

    def _attempt(self) -> None:
        self._committing = False
        self._at = self.parts[0].target.name
        with self.database.engine.connect() as open:
            todo = [part for part in self.parts if epochs.published(open, part.name) < self.epoch]
            self._unknown = False
            for part in todo:
                self._at = part.target.name
                self._apply(open, part)
                epochs.record(open, part.name, self.epoch)
            self._committing = True
            open.commit()

    def _apply(self, open: Connection, part: Part) -> None:
        writer = WRITERS[self.database.dialect]
        for step in part.steps():
            if step.deletes:
                writer.delete(open, part.target, part.staging, self._paths(part, step.deletes))
            for file in self._paths(part, step.upserts):
                writer.upsert(open, part.target, part.staging, file)

    def _paths(self, part: Part, names: list[str]) -> list[str]:
        return [f"{part.directory}/{self.epoch}/{name}" for name in names]

    def _given_up(self, error: Exception) -> ConnectorError | CommitUnknownError:
        failed = failure(error, self.database, self._at, self.epoch)
        if not self._unknown or not is_fleeting(error):
            return failed
        return CommitUnknownError(
            f"{failed.message}. The connection was lost during COMMIT: it is not known whether the database "
            f"has epoch {self.epoch}.",
            hint="Start the job again once the database is back. The job then finds out; nothing is lost or "
            "written twice.",
        )


class TableWriter(Protocol):
    """Applies staged rows within the open transaction. A file has no key twice."""

    def rows(self, target: TargetTable) -> RowsFormat:
        """How tasks keep the rows for this writer."""
        ...

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, file: str) -> None: ...

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None: ...


WRITERS: dict[str, TableWriter] = {"postgresql": PostgresWriter(), "sqlite": SqliteWriter()}
"""One way of writing per database, by dialect."""
