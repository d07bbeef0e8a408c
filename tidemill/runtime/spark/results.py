"""Results on the driver: small ones in memory, large ones in a file that is mapped into memory.

Tasks hand over their rows when they end, in any order; the rows are put into the order of the tasks at the
end. When the rows are too large for memory, they are written to a file, and the file is mapped. So the result
is a Table in either case, and a large result takes disk instead of memory. The file has no name: it is gone
when nothing reads it any more. Cost beside Spark's own way: one pass over a local file for a large result.

Literal rows, and projections of them, are a table in the driver when Spark's optimizer has ended.
``local_rows`` takes the rows from there, because Spark would run a job to collect them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.errors import StateError
from tidemill.spark_internals.results import arrow_schema, arrow_stream, local_stream, read_int

MEMORY = 64 << 20
"""Bytes of a result that are kept in memory."""
_ROOM = "Make room there, set TMPDIR to another folder, or write the result into a table with INSERT."


def collected(frame: DataFrame, memory: int = MEMORY) -> pa.Table:
    """The rows of ``frame``, in order. Runs it; its errors are Spark's."""
    schema, spool = arrow_schema(frame), _Spool(memory)
    with arrow_stream(frame) as stream, closing(spool):
        found = list(_in_order(stream, spool))
    return pa.Table.from_batches(found).cast(schema) if found else schema.empty_table()


def _in_order(stream: IO[bytes], spool: _Spool) -> Iterator[pa.RecordBatch]:
    """Batches come as their tasks end, then their order; an error of the JVM stands where the order would."""
    for batch in pa.ipc.open_stream(stream):
        spool.add(batch)
    count = read_int(stream)
    batches = spool.batches() if count > 0 else []
    for _ in range(count):
        yield batches[read_int(stream)]


@dataclass(slots=True)
class _Spool:
    """Batches in the order of their coming."""

    memory: int
    _held: list[pa.RecordBatch] = field(default_factory=list)
    _bytes: int = 0
    _path: str = ""
    _writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        with _on_disk():
            self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        if self._writer is not None:
            self._writer.write_batch(batch)
            return
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > self.memory:
            self._open(batch.schema)

    def _open(self, schema: pa.Schema) -> None:
        handle, self._path = tempfile.mkstemp(prefix="tidemill-result-", suffix=".arrow")
        os.close(handle)
        self._writer = pa.RecordBatchFileWriter(self._path, schema)
        for batch in self._held:
            self._writer.write_batch(batch)
        self._held.clear()

    def batches(self) -> list[pa.RecordBatch]:
        """All of them; nothing can be added any more."""
        if self._writer is None:
            return self._held
        with _on_disk():
            self._writer.close()
            reader = pa.ipc.open_file(pa.memory_map(self._path))
        return [reader.get_batch(i) for i in range(reader.num_record_batches)]

    def close(self) -> None:
        """The file lives as long as it is mapped."""
        if self._path:
            os.remove(self._path)


@contextmanager
def _on_disk() -> Iterator[None]:
    """StateError where the disk does not take it."""
    try:
        yield
    except (OSError, pa.ArrowException) as e:
        said = f"A result too large for memory could not be written to {tempfile.gettempdir()}: {e}"
        raise StateError(said, hint=_ROOM) from None


def local_rows(frame: DataFrame) -> pa.Table | None:
    """The rows of ``frame``, in order; None where they take a job. Errors of what it computes are Spark's."""
    found = local_stream(frame)
    if found is None:
        return None
    schema = arrow_schema(frame)
    if not found:
        return schema.empty_table()
    with pa.ipc.open_stream(found) as stream:
        return stream.read_all().cast(schema)
