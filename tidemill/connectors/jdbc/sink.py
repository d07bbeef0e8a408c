"""Writes a table of a database, exactly once.

1. *stage*: tasks keep their rows as files in the staging directory, ready to be applied.
2. *publish*: one transaction deletes, upserts (or appends) the rows of all sinks of the job on this
   database and records the epoch in ``tidemill_epochs``; an epoch that is recorded is not applied again.
3. The staged files go away after the commit.

A database that is down is tried again for ``connection.max-retry-timeout``; then the job fails and
publishes the same files when it is started again.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.connectors.api import GroupedSink
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.jdbc import epochs, fitting
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.publishing import WRITERS, Part, Publication, TaskFiles
from tidemill.connectors.jdbc.staging import DELETE_FILE, UPSERT_FILE, JdbcStager
from tidemill.connectors.jdbc.target import TargetTable
from tidemill.connectors.jdbc.urls import Database
from tidemill.files.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcSink(GroupedSink):
    """``name``: the sink's own, stable over restarts; ``directory``: its own below ``staging``; ``patience``
    in seconds; ``ordered`` as in SinkRequest."""

    database: Database
    target: TargetTable
    staging: Storage
    directory: str
    name: str
    patience: float
    ordered: bool = False

    @property
    def group(self) -> Hashable:
        """Sinks of one job on one database commit together."""
        return ("jdbc", self.database.place)

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return map_batches(frame, self.stager(epoch), "token STRING")

    def stager(self, epoch: int) -> JdbcStager:
        return JdbcStager(
            storage=self.staging,
            directory=self._staged(epoch),
            fields=self.target.fields,
            keys=self.target.keys,
            rows=WRITERS[self.database.dialect].rows(self.target),
        )

    def publish(self, epoch: int, tokens: list[str]) -> None:
        self.publish_group(epoch, [(self, tokens)])

    def publish_group(self, epoch: int, parts: Sequence[tuple[JdbcSink, list[str]]]) -> None:
        """As ``Publication.run``."""
        shares = [sink._part(tokens) for sink, tokens in parts]
        if any(task.upserts or task.deletes for share in shares for task in share.tasks):
            Publication(database=self.database, epoch=epoch, parts=shares, patience=self.patience).run()
        for sink, _ in parts:
            sink.staging.remove_directory(sink._staged(epoch))
            sink.staging.prune(sink.directory)

    def discard(self, epoch: int) -> None:
        """Of the epoch before it, which may yet be published again, nothing goes."""
        for name in self.staging.directories(self.directory):
            if name != str(epoch - 1):
                self.staging.remove_directory(f"{self.directory}/{name}")

    def finish(self) -> None:
        self.staging.remove_directory(self.directory)
        self.staging.prune(self.directory.rpartition("/")[0])

    def check(self) -> None:
        """ConnectorError when the table is not there or cannot take the rows."""
        try:
            fitting.check(self.database, self.target)
            epochs.create(self.database.engine)
        except DATABASE_ERRORS as e:
            raise failure(e, self.database, self.target.name) from None

    def _staged(self, epoch: int) -> str:
        return f"{self.directory}/{epoch}"

    def _part(self, tokens: list[str]) -> Part:
        return Part(
            name=self.name,
            target=self.target,
            staging=self.staging,
            directory=self.directory,
            tasks=[_task_files(token) for token in tokens],
            ordered=self.ordered,
        )


def _task_files(token: str) -> TaskFiles:
    files = json.loads(token)["files"]
    named = {what: [name for name, kind, _ in files if kind == what] for what in (UPSERT_FILE, DELETE_FILE)}
    return TaskFiles(upserts=named[UPSERT_FILE], deletes=named[DELETE_FILE])
