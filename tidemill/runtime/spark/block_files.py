"""Large blocks of an exchange lie in files that writer and reader share; Spark carries where they lie.

Through the JVM each byte would be copied a good half dozen times: into a stream, a row, a file, and back.
Here the writer writes it once, and the reader maps the file: its columns are views of the mapped bytes. That
takes a folder that all tasks of an epoch see, so it is done within one machine only. Small blocks go with
Spark's rows.

A file belongs to one task's attempt, a folder to one run of one epoch, whose frames remove it (``removed``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from pyspark import SparkContext, SparkFiles

from tidemill.runtime.spark.applications import application_id
from tidemill.runtime.spark.settings import is_within_machine

LARGE = 64 << 10
"""Bytes of a block that is worth a file."""
_ALIGNED = 64
"""Where Arrow wants its buffers to begin."""
_ELSEWHERE = b"@"
"""What the text that says where a block lies begins with, and no stream of Arrow's."""


@contextmanager
def block_folder(context: SparkContext) -> Iterator[str | None]:
    """A name for a folder of one run's blocks, which goes with the block; None where tasks run on several
    machines."""
    if not is_within_machine(context.master or ""):
        yield None
        return
    # Spark removes what is in there at its end, should this process be killed before.
    folder = os.path.join(_spark_files(application_id(context)), f"blocks-{uuid4().hex}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _spark_files(application: str) -> str:
    """The folder of files that an application has sent. Asking for it is a call into the JVM."""
    root: str = SparkFiles.getRootDirectory()
    return root


@dataclass(slots=True)
class BlockWriter:
    """Of one task; ``folder``: None sends all that is written through Spark."""

    folder: str | None = None
    _file: pa.NativeFile | None = None
    _path: str = ""

    def __enter__(self) -> BlockWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def written(self, table: pa.Table) -> pa.Buffer:
        """What Spark is to carry for ``table``."""
        if self.folder is None or table.nbytes < LARGE:
            return _stream(table)
        file = self._opened(self.folder)
        file.write(b"\0" * (-file.tell() % _ALIGNED))
        start = file.tell()
        _write(file, table)
        return pa.py_buffer(_ELSEWHERE + f"{start} {file.tell() - start} {self._path}".encode())

    def _opened(self, folder: str) -> pa.NativeFile:
        if self._file is None:
            os.makedirs(folder, exist_ok=True)
            made, self._path = tempfile.mkstemp(dir=folder)
            os.close(made)
            self._file = pa.OSFile(self._path, "wb")
        return self._file


@dataclass(slots=True)
class BlockReader:
    """Of one task."""

    _files: dict[str, pa.MemoryMappedFile] = field(default_factory=dict)

    def table(self, data: pa.Buffer) -> pa.Table:
        """What ``written`` was given."""
        if data.slice(0, 1).to_pybytes() == _ELSEWHERE:
            start, length, path = data.slice(1).to_pybytes().decode().split(" ", 2)
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = pa.memory_map(path)
            file.seek(int(start))
            data = file.read_buffer(int(length))
        return ipc.open_stream(data).read_all()


def binary_of(data: pa.Buffer) -> pa.Array:
    """A column of one value, which is not copied."""
    ends = pa.py_buffer(np.array([0, data.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, data])


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    _write(sink, table)
    return sink.getvalue()


def _write(sink: pa.NativeFile, table: pa.Table) -> None:
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
