"""Runs a query as a stream, in epochs with stops and crashes, and as a batch over what its tables become."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.random_queries.case import SINK, Query, Run
from tests.random_queries.tables import Table
from tests.runtime.running import Change, Crash, Row, crash_at, folded
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import TableResult

WAIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The tables' files in a folder: ``<table>.changes`` for streams, ``<table>.rows`` for batches."""

    folder: Path
    tables: Sequence[Table]

    def write(self) -> Data:
        self.folder.mkdir(parents=True, exist_ok=True)
        for table in self.tables:
            for end, lines in (("changes", table.changelog_lines()), ("rows", table.final_lines())):
                (self.folder / f"{table.name}.{end}").write_text("".join(f"{line}\n" for line in lines))
        return self

    def environment(self, options: dict[str, str], *, changelog: bool) -> TableEnvironment:
        environment = TableEnvironment.create(options)
        end = "changes" if changelog else "rows"
        for table in self.tables:
            path = self.folder / f"{table.name}.{end}"
            for statement in table.ddl(path, changelog=changelog):
                environment.execute_sql(statement)
        return environment


@dataclass(slots=True, kw_only=True)
class Stretch:
    """One running job; it is told to stop after ``run.epochs`` epochs, or dies in the last of them."""

    run: Run
    _seen: int = 0
    _result: TableResult | None = None
    _started: threading.Event = field(default_factory=threading.Event)

    def start(self, query: str, environment: TableEnvironment) -> None:
        if self.run.crash:
            environment.context.fault = crash_at(self.run.crash, self.run.epochs)
        else:
            environment.context.on_progress = self._on_progress
        try:
            self._result = environment.execute_sql(query)
        finally:
            self._started.set()

    def changes(self) -> list[Change]:
        """The changelog; nothing where it goes into a table."""
        assert self._result is not None
        if not self._result.changelog:
            with suppress(Crash):
                self._result.wait(WAIT_SECONDS)
            return []
        with self._result.collect() as rows:
            return [(row.kind.short, tuple(map(plain, row))) for row in rows]

    def _on_progress(self, _: EpochProgress) -> None:
        self._started.wait(WAIT_SECONDS)
        self._seen += 1
        if self._seen == self.run.epochs and self._result is not None and self._result.job is not None:
            self._result.job.stop()


@dataclass(slots=True, kw_only=True)
class Stream:
    """The streaming side of a query: ``start`` begins its first stretch, ``answer`` waits for the last."""

    data: Data
    query: Query
    checkpoint: Path
    _running: Stretch | None = None

    def start(self) -> Stream:
        if self.query.sink:
            self._make_table()
        self._running = self._stretch(self.query.runs[0])
        return self

    def changes(self) -> list[Change]:
        assert self._running is not None
        changes = self._running.changes()
        for run in self.query.runs[1:]:
            changes += self._stretch(run).changes()
        return changes

    def answer(self) -> Counter[Row]:
        """What the changelog adds up to; AssertionError where it takes away what is not there."""
        changes = self.changes()
        if not self.query.sink:
            return folded(changes)
        with closing(sqlite3.connect(self._database)) as database:
            return Counter(database.execute(f"SELECT * FROM {SINK}").fetchall())

    @property
    def _database(self) -> Path:
        return self.checkpoint / "sink.db"

    def _make_table(self) -> None:
        self.checkpoint.mkdir(parents=True)
        names = ", ".join(c.name for c in self.query.stored)
        key = ", ".join(c.name for c in self.query.key)
        with closing(sqlite3.connect(self._database)) as database:
            database.execute(f"CREATE TABLE {SINK} ({names}, PRIMARY KEY ({key}))")

    def _stretch(self, run: Run) -> Stretch:
        options = {
            **self.query.options,
            "tidemill.epoch.max-rows": str(run.rows),
            "execution.checkpointing.dir": str(self.checkpoint / "epochs"),
        }
        stretch = Stretch(run=run)
        environment = self.data.environment(options, changelog=True)
        if self.query.sink:
            url = f"jdbc:sqlite:{self._database}"
            options = {"connector": "jdbc", "url": url, "table-name": SINK}
            environment.execute_sql(sink_ddl(self.query, options))
        stretch.start(self.query.text, environment)
        return stretch


def sink_ddl(query: Query, options: dict[str, str]) -> str:
    """CREATE TABLE of the table that takes the query's rows by its key."""
    key = query.key
    columns = [f"{c.name} {c.type.value}{' NOT NULL' * (c in key)}" for c in query.stored]
    columns.append(f"PRIMARY KEY ({', '.join(c.name for c in key)}) NOT ENFORCED")
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    return f"CREATE TABLE {SINK} ({', '.join(columns)}) WITH ({given})"


def batch_answer(data: Data, query: str) -> Counter[Row]:
    """The rows of a batch run."""
    environment = data.environment(
        {"execution.runtime-mode": "batch", "parallelism.default": "1"}, changelog=False
    )
    with environment.execute_sql(query).collect() as rows:
        return Counter(tuple(map(plain, row)) for row in rows)


def plain(value: Any) -> Any:
    """Values that can be counted: one text for every NaN, another for the zero that Python takes for 0.0."""
    if isinstance(value, float) and (math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)):
        return "NaN" if value else "-0.0"
    if isinstance(value, dict):
        return tuple(sorted(((plain(k), plain(v)) for k, v in value.items()), key=repr))
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value
