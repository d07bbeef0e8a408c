"""DELETE and UPDATE of a table without a key that has deletion vectors: the changed rows are marked as
deleted in their files, and only their new values are written.

1. Workers get the changed rows alone, each with its file and its number in it. They write the new rows, and
   say the numbers of the old ones in their tokens.
2. One version takes the new files in, and gives the old files longer deletion vectors.

Another writer's change of one of the files is an error, as of ``rewriting``.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tidemill.connectors.lakehouse.api import Marked, VectorWriter
from tidemill.connectors.lakehouse.files import DataFile, RowNumbers
from tidemill.connectors.lakehouse.statistics import column_statistics
from tidemill.connectors.lakehouse.writing import LakeWriter
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMarker:
    """Takes the columns of ``writer``, then the file and the number of each row. ``writes``: the rows have
    new values; otherwise they go."""

    writer: LakeWriter
    writes: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the column ``token``: as of ``writer``, with {"marks": {file: packed numbers}}."""
        found: dict[str, list[RowNumbers]] = {}
        (made,) = self.writer(self._noted(batches, found))
        marks = {file: np.unique(np.concatenate(numbers)) for file, numbers in found.items()}
        token = json.loads(made.column(0)[0].as_py())
        token["marks"] = {file: _packed(numbers) for file, numbers in marks.items()}
        token["rows"] = sum(len(numbers) for numbers in marks.values())
        yield pa.record_batch([pa.array([json.dumps(token)])], names=["token"])

    def _noted(
        self, batches: Iterable[pa.RecordBatch], found: dict[str, list[RowNumbers]]
    ) -> Iterator[pa.RecordBatch]:
        place = len(self.writer.fields)
        for batch in batches:
            files = batch.column(place).dictionary_encode()
            codes, numbers = np.asarray(files.indices), np.asarray(batch.column(place + 1), np.int64)
            for code, file in enumerate(files.dictionary.to_pylist()):
                found.setdefault(file, []).append(numbers[codes == code])
            yield batch if self.writes else batch.slice(0, 0)


def marks_of(tokens: Sequence[str]) -> dict[str, RowNumbers]:
    """The marked rows of each file, ascending, of all tasks."""
    found: dict[str, list[RowNumbers]] = {}
    for token in tokens:
        for file, packed in json.loads(token).get("marks", {}).items():
            found.setdefault(file, []).append(_unpacked(packed))
    return {file: np.unique(np.concatenate(numbers)) for file, numbers in found.items()}


def marked_files(
    storage: Storage, files: Sequence[DataFile], marks: dict[str, RowNumbers], vectors: VectorWriter
) -> tuple[list[DataFile], list[Marked]]:
    """The files that lose all of their rows, and those that lose some. ConnectorError where a file cannot be
    read or the vectors cannot be written."""
    gone: list[DataFile] = []
    left: list[tuple[DataFile, RowNumbers]] = []
    for file in files:
        numbers = marks.get(storage.full_path(file.path), np.zeros(0, np.int64))
        deleted = numbers if file.deleted is None else np.union1d(file.deleted.numbers(storage), numbers)
        if len(deleted) == file.rows:
            gone.append(file)
        elif len(numbers):
            left.append((file, deleted))
    if not left:
        return gone, []
    try:
        made = vectors.write(storage, [numbers for _, numbers in left])
        columns = storage.each(lambda file: _statistics(storage, file), [file for file, _ in left])
    except (OSError, pa.ArrowException) as e:
        raise ConnectorError(f"Cannot mark rows as deleted at {storage.full_path('')}: {e}") from None
    return gone, [
        Marked(file=file, vector=vector, columns=found)
        for (file, _), vector, found in zip(left, made, columns, strict=True)
    ]


def _statistics(storage: Storage, file: DataFile) -> dict[str, list[object]]:
    with storage.open(file.path) as stream:
        return column_statistics(parquet.ParquetFile(stream).metadata)


def _packed(numbers: RowNumbers) -> str:
    """Differences of neighbours are small: about two bytes for each number."""
    steps = np.diff(numbers, prepend=0).astype("<i8")
    return base64.b85encode(zlib.compress(steps.tobytes(), 1)).decode()


def _unpacked(packed: str) -> RowNumbers:
    steps = np.frombuffer(zlib.decompress(base64.b85decode(packed)), "<i8")
    return np.cumsum(steps.astype(np.int64))
