"""The columnar exchange: rows cross a Spark shuffle as few Arrow blocks, not one by one.

The map side (``Writers``, in a Python worker) hashes the key, splits a chunk of rows by key
group and emits one Arrow IPC block per target partition; Spark shuffles those blocks as binary
values; the reduce side maps them back without copying. The partition of a key is a function of its
hash and the parallelism only. The writer runs in the worker that made the rows (a source's reader or
the kernel below) where nothing but column references lies in between, else behind Spark's projection.

A task whose rows know event time ends with a control block for every partition (``changelog.watermarks``),
so every partition has a task, and it knows how far time has come.

The local phase of an aggregate lives here too: a chunk is combined before it is sent when the chunks
of this task so far shrank by it (``LOCAL_GAIN``), which is decided by what was seen, not configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from operator import itemgetter
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import in_utc
from tidemill.changelog.columns import Hashes, single, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN, Control, Prefix
from tidemill.operators.api import HASH_COLUMN, Condensing, LocalPhase, Summary
from tidemill.operators.buckets import Buckets, Everywhere
from tidemill.operators.rows.copies import LOCAL_GAIN, SAMPLE_ROWS, is_worth_combining
from tidemill.runtime.spark.block_files import BlockReader, BlockWriter, binary_of
from tidemill.runtime.spark.watermark_stage import Handover, task_number
from tidemill.state.slices import KEY_GROUP_BITS

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
PARTITION_COLUMN = "$partition"
PORT_COLUMN = "$port"
FORM_COLUMN = "$form"
TASK_COLUMN = "$task"
BLOCK_COLUMN = "$block"
BLOCK_SCHEMA = (
    f"`{PARTITION_COLUMN}` INT, `{PORT_COLUMN}` INT, `{FORM_COLUMN}` TINYINT, `{TASK_COLUMN}` INT,"
    f" `{BLOCK_COLUMN}` BINARY"
)
CHUNK_ROWS = 1 << 18


class Form(IntEnum):
    """What a block holds: rows as they are, rows combined by the local phase, a task's ``Control``. A tick
    holds nothing: the partition is to be run."""

    RAW = 0
    COMBINED = 1
    CONTROL = 2
    TICK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRows:
    """Keeps inserts and deletes, and the updates that change a result of ``bits``. ``kind`` and ``mark`` are
    positions of columns; ``mark`` has the results that a row changes, as bits."""

    kind: int
    mark: int
    bits: int

    def of(self, rows: Rows) -> Rows:
        kinds = vector(single(rows.column(self.kind))).values
        marks = vector(single(rows.column(self.mark))).values
        whole = (kinds == RowKind.INSERT) | (kinds == RowKind.DELETE)
        mine = whole | ((marks & self.bits) != 0)
        return rows if mine.all() else rows.filter(pa.array(mine))


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRows:
    """What an operator's input is made of: ``columns``: (position, name for the kernel); ``keys``: kernel
    names, none is one partition for all rows; ``marked``: which of the rows; ``buckets``: a column more."""

    columns: tuple[tuple[int, str], ...]
    keys: tuple[str, ...]
    marked: MarkedRows | None = None
    buckets: Buckets | Everywhere | None = None

    def of(self, rows: pa.Table) -> pa.Table:
        """The kernel's columns, and ``$hash``."""
        if self.marked is not None:
            rows = self.marked.of(rows)
        table = rows.select([c for c, _ in self.columns]).rename_columns([k for _, k in self.columns])
        table = in_utc(table)
        if self.buckets is not None:
            table = self.buckets.added(table)
        hashes = hash_columns([table.column(k) for k in self.keys], table.num_rows)
        return table.append_column(HASH_COLUMN, pa.array(hashes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeWriter:
    """Writes the blocks of one port. ``local``: the combiner of the operator above, None for no local phase.
    ``summary``: makes of the rows what goes to every partition in their place. ``timed``: the port wants the
    control of every task. ``in_place``: the rows stay in the partition that they were made in."""

    port: int
    rows: PortRows
    partitions: int
    local: LocalPhase | None = None
    summary: Summary | None = None
    timed: bool = False
    in_place: bool = False

    def blocks(
        self, batches: Iterable[pa.RecordBatch], task: int, writer: BlockWriter
    ) -> Iterator[pa.RecordBatch]:
        """The blocks of these rows; ``task``: the place of the writing task in its stage."""
        for partition, form, data in self._data(batches, writer):
            yield block_row(partition, self.port, form, task, data)

    def controls(self, control: Control, task: int) -> Iterator[pa.RecordBatch]:
        """The end of a task, for every partition."""
        for partition in (control.task,) if self.in_place else range(self.partitions):
            yield block_row(partition, self.port, Form.CONTROL, task, pa.py_buffer(control.to_bytes()))

    def _data(
        self, batches: Iterable[pa.RecordBatch], writer: BlockWriter
    ) -> Iterator[tuple[int, Form, pa.Buffer]]:
        combining = self.local is not None
        for chunk in _chunks(batches):
            table = self.rows.of(chunk)
            if self.summary is not None:
                yield from self._to_all(self.summary.of(table), writer)
                continue
            if isinstance(self.rows.buckets, Everywhere):
                table, hot = self.rows.buckets.parted(table)
                yield from self._to_buckets(self.rows.buckets, hot, writer)
                if len(table) == 0:
                    continue
            if combining and self.local is not None and _repeats(table):
                partial = self.local.combine(table)
                combining = len(partial) <= LOCAL_GAIN * len(table)
                if combining:
                    yield from self._split(partial, Form.COMBINED, writer)
                    continue
            yield from self._split(table, Form.RAW, writer)

    def _to_all(self, table: pa.Table, writer: BlockWriter) -> Iterator[tuple[int, Form, pa.Buffer]]:
        if len(table):
            data = writer.written(table)
            for partition in range(self.partitions):
                yield partition, Form.RAW, data

    def _to_buckets(
        self, buckets: Everywhere, hot: pa.Table, writer: BlockWriter
    ) -> Iterator[tuple[int, Form, pa.Buffer]]:
        """What says most with few rows goes to all, however many these still are."""
        if len(hot) == 0:
            return
        local: object = self.local
        if isinstance(local, Condensing):
            yield from self._split(buckets.copied(local.condensed(hot)), Form.COMBINED, writer)
        else:
            yield from self._split(buckets.copied(hot), Form.RAW, writer)

    def _split(
        self, table: pa.Table, form: Form, writer: BlockWriter
    ) -> Iterator[tuple[int, Form, pa.Buffer]]:
        for partition, rows in _split(table, self.partitions):
            yield partition, form, writer.written(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """Writes the blocks of the ports of one task that get the same rows, in one pass over them.

    ``handover``: where the maker of the rows leaves the control of its task, None where there is no event
    time. ``folder``: of large blocks (see ``block_files``).
    """

    ports: tuple[ExchangeWriter, ...]
    handover: Handover | None = None
    folder: str | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = task_number()
        with BlockWriter(self.folder) as writer:
            if len(self.ports) == 1:
                yield from self.ports[0].blocks(batches, task, writer)
            else:
                for chunk in chunks(batches):
                    yield from self.blocks(chunk, task, writer)
        control = None if self.handover is None else self.handover.take()
        if control is not None:
            for port in self.ports:
                if port.timed:
                    yield from port.controls(control, task)

    def blocks(self, chunk: list[pa.RecordBatch], task: int, writer: BlockWriter) -> Iterator[pa.RecordBatch]:
        for port in self.ports:
            yield from port.blocks(chunk, task, writer)


def block_row(partition: int, port: int, form: Form, task: int, data: pa.Buffer) -> pa.RecordBatch:
    """One row of BLOCK_SCHEMA."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([partition], pa.int32()),
            pa.array([port], pa.int32()),
            pa.array([form], pa.int8()),
            pa.array([task], pa.int32()),
            binary_of(data),
        ],
        names=[PARTITION_COLUMN, PORT_COLUMN, FORM_COLUMN, TASK_COLUMN, BLOCK_COLUMN],
    )


_BUCKETS = 1 << 16
"""In which the rows of keys are counted."""


@dataclass(slots=True)
class Received:
    """What one port of one partition got: raw rows, partial rows, and how far time has come by origin."""

    raw: list[pa.Table]
    partial: list[pa.Table]
    marks: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(map(len, self.raw)) + sum(map(len, self.partial))

    @property
    def largest_key(self) -> int:
        """How many rows the key with the most of them has, 0 where they did not come by key. Keys are counted
        in buckets first, and one by one in the fullest: one pass, which finds a key that is much larger than
        others."""
        tables = [t for t in (*self.raw, *self.partial) if HASH_COLUMN in t.column_names and len(t)]
        if not tables:
            return 0
        hashes = np.concatenate([t.column(HASH_COLUMN).to_numpy() for t in tables])
        buckets = (hashes & np.uint64(_BUCKETS - 1)).astype(np.int64)
        fullest = hashes[buckets == np.bincount(buckets).argmax()]
        return int(np.unique(fullest, return_counts=True)[1].max())

    def not_before(self, floor: int) -> Received:
        """Rows that come when ``floor`` at least was reached."""
        raw, partial = ([_raised(t, floor) for t in tables] for tables in (self.raw, self.partial))
        return Received(raw, partial, self.marks)


def received(
    batches: Iterable[pa.RecordBatch], ports: int, reached: Mapping[str, int]
) -> tuple[int, tuple[Received, ...]]:
    """The partition, and the blocks of one reduce task by port.

    Blocks are put in the order of the tasks that wrote them, whatever the order in which they were fetched:
    a stage that runs again gives the same rows, to the last bit of a sum and the order of equal rows.
    The partition is what the blocks say: below a union Spark counts tasks over all its branches. A task
    without blocks has none (-1). ``reached``: watermarks by origin before the epoch.
    """
    reader = BlockReader()
    inputs = tuple(_Incoming(reader) for _ in range(ports))
    partition = -1
    for batch in batches:
        for target, port, form, task, block in zip(
            *(batch.column(i).to_pylist() for i in range(4)), batch.column(4), strict=True
        ):
            partition = target
            inputs[port].add(Form(form), task, block.as_buffer())
    return partition, tuple(i.received(reached) for i in inputs)


@dataclass(slots=True)
class _Incoming:
    reader: BlockReader
    raw: list[tuple[int, pa.Table]] = field(default_factory=list)
    partial: list[tuple[int, pa.Table]] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)

    def add(self, form: Form, task: int, data: pa.Buffer) -> None:
        if form is Form.TICK:
            return
        if form is Form.CONTROL:
            self.controls.append(Control.of(data.to_pybytes()))
            return
        table = self.reader.table(data)
        (self.partial if form is Form.COMBINED else self.raw).append((task, table))

    def received(self, reached: Mapping[str, int]) -> Received:
        """The blocks in the order of the tasks that wrote them, not of their arrival. So a task that runs
        again gets the same rows in the same order, and its floating-point sums are equal to the last bit."""
        prefix = Prefix.over(self.controls, reached)
        raw, partial = (
            [_lifted(table, task, prefix) for task, table in sorted(tables, key=itemgetter(0))]
            for tables in (self.raw, self.partial)
        )
        return Received(raw, partial, prefix.marks)


def _lifted(table: pa.Table, task: int, prefix: Prefix) -> pa.Table:
    """The rows with the watermark that all rows before them had reached."""
    place = table.schema.get_field_index(WATERMARK_COLUMN)
    if place < 0:
        return table
    marks = prefix.lifted(vector(single(table.column(place))).values, task)
    return table.set_column(place, WATERMARK_COLUMN, pa.array(marks))


def _raised(table: pa.Table, floor: int) -> pa.Table:
    place = table.schema.get_field_index(WATERMARK_COLUMN)
    if place < 0:
        return table
    marks = np.maximum(vector(single(table.column(place))).values, floor)
    return table.set_column(place, WATERMARK_COLUMN, pa.array(marks))


def partition_of(hashes: Hashes, partitions: int) -> Hashes:
    """The partition of each hash: its key group (the top bits), spread evenly over the partitions."""
    return ((hashes >> np.uint64(64 - KEY_GROUP_BITS)) * np.uint64(partitions)) >> np.uint64(KEY_GROUP_BITS)


def _repeats(table: pa.Table) -> bool:
    """Whether keys may repeat often enough to combine."""
    return is_worth_combining(table.column(HASH_COLUMN).chunk(0).slice(0, SAMPLE_ROWS).to_numpy(), len(table))


def _split(table: pa.Table, partitions: int) -> Iterator[tuple[int, pa.Table]]:
    if partitions == 1 or len(table) == 0:
        if len(table):
            yield 0, table
        return
    hashes = table.column(HASH_COLUMN).combine_chunks().to_numpy()
    targets = partition_of(hashes, partitions)
    for partition in range(partitions):
        rows = np.flatnonzero(targets == partition)
        if len(rows):
            yield partition, table if len(rows) == len(table) else table.take(pa.array(rows))


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for chunk in chunks(batches):
        yield pa.Table.from_batches(chunk).combine_chunks()


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Small batches put together, large ones as they come."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield waiting
            waiting, rows = [], 0
    if rows:
        yield waiting
