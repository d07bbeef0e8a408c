"""Compares what a job has after an epoch with what its query gives over the same rows, run once more.

1. Between two epochs, or of a job that has stopped, the tables of the sinks are copied as they are. The job
   waits for that.
2. The query runs again over what the job had read (``replaying``), into a temporary directory.
3. Sink by sink the copy is compared with what the query gives, and the state of each aggregation with that of
   the second run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.task_frames import task_frame
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.savepoint import SOURCES, Savepoint
from tidemill.runtime.job.request import epoch_session, parallelism
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.captured import CapturingSink, KeptRows
from tidemill.runtime.replay.clock import refuse_moving, refuse_twice
from tidemill.runtime.replay.replaying import History, Replay, keys_of
from tidemill.runtime.spark.contents import Content, content, content_of, difference
from tidemill.runtime.state_tables.naming import (
    OperatorState,
    StateColumn,
    StoredTable,
    find_table,
    operators_of,
    state_files,
    told_layout,
)
from tidemill.runtime.state_tables.source import StateReader
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import spark_schema

_WHAT = "VERIFY JOB"
MOST = 1000
"""Rows that are shown of each part."""
_KIND = "group-aggregate"
_BY_CHANCE = ("time", "partition")
"""Roles of columns that another run has others of."""
_IDENTITY = ("key", "value")
_INEXACT = (t.FloatType, t.DoubleType)
EQUAL, MORE, SKIPPED = "equal", "and more", "not compared"
_SIDES = {
    RowKind.INSERT: "only the query",
    RowKind.UPDATE_BEFORE: "the job",
    RowKind.UPDATE_AFTER: "the query",
    RowKind.DELETE: "only the job",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``part``: a sink's table, or a table of state. ``result``: ``equal``, who has the row, ``and more``, or
    ``not compared`` with the reason as ``value``. ``key``, ``value``: of the row, as text."""

    part: str
    result: str
    key: str | None = None
    value: str | None = None


Read = Callable[[p.Sink], DataFrame | str]
"""The rows of a sink's table as they are, or why they cannot be read."""


def check_verifiable(start: InsertsStart) -> None:
    """NotSupportedError where a second run would say nothing."""
    refuse_moving(start.sinks, start.request.config, _WHAT)
    refuse_twice(start.sinks, _WHAT)


def copied(start: InsertsStart, read: Read, into: Storage) -> list[KeptRows | str]:
    """Step 1: a copy of the table of each sink, or why there is none."""
    found: list[KeptRows | str] = []
    for number, sink in enumerate(start.sinks):
        frame = read(sink)
        if isinstance(frame, str):
            found.append(frame)
            continue
        place = into.below(f"copies/{number}")
        copy = CapturingSink(storage=place, fields=sink.fields, keys=(), ordered=True)
        copy.publish(0, [row[0] for row in copy.stage(frame, 0).collect()])
        found.append(replace(copy.captured_rows, keys=keys_of(sink)))
    return found


def compared(
    start: InsertsStart, job: Savepoint, copies: Sequence[KeptRows | str], into: Storage
) -> Iterator[Finding]:
    """Steps 2 and 3. ``job``: its records after the epoch that the copies are of. StateError where the
    history is gone."""
    if not job.identity.whole:
        raise StateError(
            f"{_WHAT} needs a job whose query has run from the beginning: this one has state of another "
            "query or of a savepoint"
        )
    commit = job.commit or EpochCommit(epoch=0, time=0, offsets={}, manifests={}, tokens={})
    history = History(commit=commit, sources=job.storage.below(SOURCES))
    place = into.below("again")
    again = Replay.of(start.request, start.sinks, place, "again").over(history)  # 2
    spark = epoch_session(start.request, parallelism(start.request))
    for copy, output in zip(copies, again.outputs, strict=True):  # 3
        part, fields = str(output.sink.table.path), output.sink.fields
        if isinstance(copy, str):
            yield Finding(part, SKIPPED, value=copy)
        else:
            yield from _differences(part, content(spark, copy), content(spark, output.rows), fields)
    second = Savepoint(storage=place, identity=again.identity, commit=again.commit, finished=False)
    yield from _states(spark, job, second)


def _differences(part: str, job: Content, query: Content, fields: Sequence[Field]) -> list[Finding]:
    rows = difference(job, query, pairs=True).limit(MOST + 1).collect()
    found = [_finding(part, row, fields, query.keys) for row in rows[:MOST]]
    found.sort(key=lambda f: (f.key or "", f.result))
    more = [Finding(part, MORE)] if len(rows) > MOST else []
    return found + more or [Finding(part, EQUAL)]


def _finding(part: str, row: Row, fields: Sequence[Field], keys: Sequence[int]) -> Finding:
    texts = [f"{f.name}={value}" for f, value in zip(fields, row, strict=False)]
    key = ", ".join(texts[place] for place in keys)
    value = ", ".join(text for place, text in enumerate(texts) if place not in keys)
    return Finding(part, _SIDES[RowKind(row[KIND_COLUMN])], key or None, value)


def _states(spark: SparkSession, job: Savepoint, second: Savepoint) -> Iterator[Finding]:
    """Of aggregations by key: what others keep may depend on where epochs were cut."""
    again = {operator.id: operator for operator in operators_of(second)}
    for operator in operators_of(job):
        if operator.kind != _KIND:
            continue
        for table in operator.tables:
            columns = [c for c in table.columns if c.role not in _BY_CHANCE]
            why = _why_not(job, operator, columns)
            if why:
                yield Finding(table.name, SKIPPED, value=why)
                continue
            fields = [Field(c.name, c.type) for c in columns]
            keys = [c.name for c in columns if c.role in _IDENTITY]
            own, other = again[operator.id], find_table(again.values(), table.name)
            has = content_of(_state(spark, job, operator, table), fields, keys)
            gives = content_of(_state(spark, second, own, other[1] if other else table), fields, keys)
            yield from _differences(table.name, has, gives, fields)


def _why_not(job: Savepoint, operator: OperatorState, columns: Sequence[StateColumn]) -> str:
    """Why another run may have other state of the same meaning; '' if it has not."""
    if any(isinstance(c.type, _INEXACT) for c in columns):
        return "sums of floating-point numbers depend on the order"
    is_hot = job.commit is not None and operator.id in job.commit.hot
    return "keys with many rows are kept in parts" if is_hot else ""


def _state(spark: SparkSession, of: Savepoint, operator: OperatorState, table: StoredTable) -> DataFrame:
    columns = tuple(c for c in table.columns if c.role not in _BY_CHANCE)
    reader = StateReader(
        files=state_files(of),
        table=table.stored,
        now=0 if of.commit is None else of.commit.time,
        columns=columns,
        layout=told_layout(state_files(of), table),
    )
    tasks = [
        (number, [(s.manifest, s.first, s.stop) for s in parts])
        for number, parts in sorted(operator.slices.items())
        if number in table.entries
    ]
    schema = spark_schema(tuple(Field(c.name, c.type) for c in columns))
    return map_batches(task_frame(spark, tasks), reader, schema)
