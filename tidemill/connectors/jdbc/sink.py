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
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError, NoSuchTableError, OperationalError, SQLAlchemyError

from tidemill.connectors.filesystem.storage import Storage
from tidemill.connectors.jdbc import writers as w
from tidemill.connectors.jdbc.staging import DELETE_FILE, UPSERT_FILE, JdbcStager
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PAUSE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcSink:
    """``staging``: the job's own directory for this sink; ``patience`` in seconds."""

    database: Database
    target: w.TargetTable
    staging: Storage
    job: str
    patience: float

    @property
    def group(self) -> Hashable:
        """Sinks of one job on one database commit together."""
        return ("jdbc", self.database.url, self.database.user)

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        stager = JdbcStager(
            storage=self.staging,
            directory=str(epoch),
            fields=self.target.fields,
            keys=self.target.keys,
            rows=self._writer.rows(self.target),
        )
        return frame.mapInArrow(stager, "token STRING")

    def publish(self, epoch: int, tokens: list[str]) -> None:
        self.publish_group(epoch, [(self, tokens)])

    def publish_group(self, epoch: int, parts: Sequence[tuple[JdbcSink, list[str]]]) -> None:
        """ConnectorError when the database refuses the rows or cannot be reached."""
        files = [(sink, _files(tokens)) for sink, tokens in parts]
        if any(found for _, found in files):
            self._in_transaction(epoch, files)
        for sink, _ in parts:
            sink.staging.remove_directory(str(epoch))

    def discard(self, epoch: int) -> None:
        for name in self.staging.directories(""):
            if name.isdigit() and int(name) >= epoch:
                self.staging.remove_directory(name)

    def finish(self) -> None:
        self.staging.remove_directory("")

    def check(self) -> None:
        """ConnectorError when the table is not there or lacks a column."""
        schema, _, name = self.target.name.rpartition(".")
        try:
            found = {c["name"] for c in inspect(self.database.engine).get_columns(name, schema or None)}
        except NoSuchTableError:
            raise ConnectorError(
                f"Table '{self.target.name}' does not exist in {self.database.shown}."
            ) from None
        except SQLAlchemyError as e:
            raise self._failed(e) from None
        lacking = [c for c in self.target.columns if c not in found]
        if not found:
            raise ConnectorError(f"Table '{self.target.name}' does not exist in {self.database.shown}.")
        if lacking:
            raise ConnectorError(
                f"Table '{self.target.name}' has no column '{lacking[0]}'.", expected=tuple(sorted(found))
            )

    @property
    def _writer(self) -> w.TableWriter:
        return w.WRITERS[self.database.dialect]

    def _in_transaction(self, epoch: int, files: list[tuple[JdbcSink, dict[str, list[str]]]]) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                with self.database.engine.begin() as open:
                    self._apply(open, epoch, files)
                return
            except OperationalError as e:
                if time.monotonic() >= deadline:
                    raise self._failed(e) from None
                time.sleep(_PAUSE)
            except (SQLAlchemyError, psycopg.Error) as e:
                raise self._failed(e) from None
            except OSError as e:
                raise ConnectorError(
                    f"Rows of epoch {epoch} for '{self.target.name}' are staged no more: {e}",
                    hint="Set 'sink.staging-path' to a directory that outlives the machine's restarts.",
                ) from None

    def _apply(
        self, open: Connection, epoch: int, files: list[tuple[JdbcSink, dict[str, list[str]]]]
    ) -> None:
        for statement in w.epoch_statements():
            open.exec_driver_sql(statement)
        if w.published(open, self.job) >= epoch:
            return
        for sink, found in files:
            where = [f"{epoch}/{name}" for name in found.get(DELETE_FILE, [])]
            if where:
                self._writer.delete(open, sink.target, sink.staging, where)
            where = [f"{epoch}/{name}" for name in found.get(UPSERT_FILE, [])]
            if where:
                self._writer.upsert(open, sink.target, sink.staging, where)
        w.record(open, self.job, epoch)

    def _failed(self, error: Exception) -> ConnectorError:
        cause = error.orig if isinstance(error, DBAPIError) else error
        reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        return ConnectorError(f"Database {self.database.shown}, table '{self.target.name}': {reason}")


def _files(tokens: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for token in tokens:
        for name, what, _ in json.loads(token)["files"]:
            found.setdefault(what, []).append(name)
    return found
