"""The columnar exchange: rows cross a Spark shuffle as few Arrow blocks, not one by one.

The map side (``ExchangeWriter``, in a Python worker) hashes the key, splits a chunk of rows by key
group and emits one Arrow IPC block per target partition; Spark shuffles those blocks as binary
values; the reduce side maps them back without copying. The partition of a key is a function of its
hash and the parallelism only. The writer runs in the worker that made the rows (a source's reader or
the kernel below) where nothing but column references lies in between, else behind Spark's projection.

The local phase of an aggregate lives here too: a chunk is combined before it is sent when the chunks
of this task so far shrank by it (``LOCAL_GAIN``), which is decided by what was seen, not configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from tidemill.changelog.columns import Hashes
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import HASH_COLUMN, LocalPhase

PARTITION_COLUMN = "$partition"
PORT_COLUMN = "$port"
PARTIAL_COLUMN = "$partial"
BLOCK_COLUMN = "$block"
BLOCK_SCHEMA = (
    f"`{PARTITION_COLUMN}` INT, `{PORT_COLUMN}` INT, `{PARTIAL_COLUMN}` BOOLEAN, `{BLOCK_COLUMN}` BINARY"
)
CHUNK_ROWS = 1 << 18
LOCAL_GAIN = 0.5
"""Combine while a combined chunk has at most this share of its rows."""
SAMPLE_ROWS = 1 << 14
SURELY_LARGER = 1.2
"""How far beyond that share a chunk is guessed to be before combining it is not tried."""

KEY_GROUP_BITS = 7
KEY_GROUPS = 1 << KEY_GROUP_BITS
"""Upper bound of a job's parallelism, as Flink's maximum parallelism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRows:
    """What an operator's input is made of: ``columns``: (position, name for the kernel); ``keys``: kernel
    names, none is one partition for all rows."""

    columns: tuple[tuple[int, str], ...]
    keys: tuple[str, ...]

    def of(self, rows: pa.Table) -> pa.Table:
        """The kernel's columns, and ``$hash``."""
        table = rows.select([c for c, _ in self.columns]).rename_columns([k for _, k in self.columns])
        hashes = hash_columns([table.column(k) for k in self.keys], rows.num_rows)
        return table.append_column(HASH_COLUMN, pa.array(hashes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeWriter:
    """``local``: the combiner of the operator above, None for no local phase."""

    port: int
    rows: PortRows
    partitions: int
    local: LocalPhase | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        combining = self.local is not None
        for chunk in _chunks(batches):
            table = self.rows.of(chunk)
            if combining and self.local is not None and _repeats(table):
                partial = self.local.combine(table)
                combining = len(partial) <= LOCAL_GAIN * len(table)
                if combining:
                    yield from self._blocks(partial, True)
                    continue
            yield from self._blocks(table, False)

    def _blocks(self, table: pa.Table, partial: bool) -> Iterator[pa.RecordBatch]:
        for partition, rows in _split(table, self.partitions):
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([partition], pa.int32()),
                    pa.array([self.port], pa.int32()),
                    pa.array([partial], pa.bool_()),
                    pa.array([_serialised(rows)], pa.binary()),
                ],
                names=[PARTITION_COLUMN, PORT_COLUMN, PARTIAL_COLUMN, BLOCK_COLUMN],
            )


@dataclass(slots=True)
class Received:
    """What one port of one partition got: raw rows and partial rows."""

    raw: list[pa.Table]
    partial: list[pa.Table]

    @property
    def rows(self) -> int:
        return sum(map(len, self.raw)) + sum(map(len, self.partial))


def received(batches: Iterable[pa.RecordBatch], ports: int) -> tuple[int, tuple[Received, ...]]:
    """The partition, and the blocks of one reduce task by port.

    The partition is what the blocks say: below a union Spark counts tasks over all its branches. A task
    without blocks has none (-1).
    """
    inputs = tuple(Received([], []) for _ in range(ports))
    partition = -1
    for batch in batches:
        for target, port, partial, block in zip(
            *(batch.column(i).to_pylist() for i in range(3)), batch.column(3), strict=True
        ):
            partition = target
            table = ipc.open_stream(block.as_buffer()).read_all()
            (inputs[port].partial if partial else inputs[port].raw).append(table)
    return partition, inputs


def partition_of(hashes: Hashes, partitions: int) -> Hashes:
    """The partition of each hash: its key group (the top bits), spread evenly over the partitions."""
    return ((hashes >> np.uint64(64 - KEY_GROUP_BITS)) * np.uint64(partitions)) >> np.uint64(KEY_GROUP_BITS)


def _repeats(table: pa.Table) -> bool:
    """Whether keys may repeat often enough to combine, by how often they do among the first rows."""
    rows = len(table)
    sample = table.column(HASH_COLUMN).chunk(0).slice(0, SAMPLE_ROWS).to_numpy()
    repeated = len(sample) - len(np.unique(sample))
    if rows <= len(sample) or repeated == 0:
        return repeated >= LOCAL_GAIN * rows
    # As many keys as would repeat so often if all were equally frequent.
    keys = len(sample) ** 2 / (2 * repeated)
    return bool(keys * -np.expm1(-rows / keys) <= SURELY_LARGER * LOCAL_GAIN * rows)


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
    """Small batches put together, large ones as they come."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _serialised(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    block: bytes = sink.getvalue().to_pybytes()
    return block
