"""Reads pieces of a table's Parquet files in Spark Python workers: the wanted columns of the wanted rows.

Cost: one row group at a time is in memory. A row group that two tasks share is decoded by both. Deleted rows
are decoded too, except in row groups that have no other rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.connectors.formats.api import Block, Decoder, RecordError
from tidemill.connectors.formats.columnar.parquet import FORMAT, ParquetDecoder
from tidemill.connectors.lakehouse.files import DataFile, Piece
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import BIGINT, STRING, Field, LogicalType, VarCharType
from tidemill.types.physical import arrow_type, spark_schema

CHANGE_TYPE = Field("_change_type", STRING)
_CHANGE_TYPES = ("insert", "update_preimage", "update_postimage", "delete")
"""In the order of RowKind."""
ROW_FILE, ROW_NUMBER = "file.path", "file.row-index"
METADATA: Mapping[str, LogicalType] = {
    ROW_FILE: VarCharType(nullable=False),
    ROW_NUMBER: replace(BIGINT, nullable=False),
}
_BATCH_ROWS = 1_000_000
_UNREADABLE = (OSError, pa.ArrowException, UnicodeDecodeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeReader:
    """``fields``: what to give, in order; those that are a file's partition come from there, ``places`` are
    those that say a row's place, each with its metadata key. ``limit``: how many rows of a task are enough.
    ``changes``: give ``$kind``, too, which files of changes have as text in the column ``CHANGE_TYPE``."""

    table: str
    storage: Storage
    fields: tuple[Field, ...]
    sequence: bool
    places: tuple[tuple[str, str], ...] = ()
    limit: int | None = None
    changes: bool = False

    @property
    def schema(self) -> str:
        kind = f", `{KIND_COLUMN}` TINYINT" if self.changes else ""
        sequence = f", `{SEQUENCE_COLUMN}` BIGINT" if self.sequence else ""
        return spark_schema(self.fields) + kind + sequence

    def read(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        """WorkerError where a file is gone or does not fit the table."""
        left = self.limit
        for table in (found for piece in pieces for found in self._tables(piece)):
            wanted = table if left is None else table.slice(0, left)
            yield from wanted.to_batches(max_chunksize=_BATCH_ROWS)
            left = None if left is None else left - wanted.num_rows
            if left == 0:
                return

    def _tables(self, piece: Piece) -> Iterator[pa.Table]:
        try:
            with self.storage.open(piece.file.path) as file:
                yield from self._groups(file, piece)
        except FileNotFoundError:
            raise WorkerError(self._gone(piece.file)) from None
        except RecordError as e:
            raise WorkerError(ConnectorError(f"{e.reason} ({self._shown(piece.file)})")) from None
        except ConnectorError as e:
            raise WorkerError(e) from None
        except _UNREADABLE as e:
            raise WorkerError(ConnectorError(f"Cannot read file {self._shown(piece.file)}: {e}")) from None

    def _groups(self, file: pa.NativeFile, piece: Piece) -> Iterator[pa.Table]:
        decoder = self.decoder(file, piece.file)
        ends = list(accumulate(FORMAT.group_rows(file)))
        wanted = piece.file.is_wanted(self.storage, piece.start, piece.end)
        for low, high in zip([0, *ends], ends, strict=False):
            start, end = max(low, piece.start), min(high, piece.end)
            own = None if wanted is None else wanted[start - piece.start : end - piece.start]
            if start < end and (own is None or own.any()):
                block = Block(data=pa.py_buffer(b""), source=file, start=start, end=end)
                made = self._complete(decoder.decode(block), piece, start)
                made = made if own is None else made.filter(pa.array(own))
                yield _of_kinds(made, piece.file.kinds) if piece.file.changes else made

    def decoder(self, file: pa.NativeFile, data: DataFile) -> Decoder:
        """Of the fields that the file holds; columns are found by name."""
        stored = self.stored(data)
        if data.changes:
            stored = (*stored, CHANGE_TYPE)
        return ParquetDecoder(wanted=stored, declared=tuple(f.name for f in stored))

    def stored(self, data: DataFile) -> tuple[Field, ...]:
        """The fields that the file holds."""
        elsewhere = data.partition.keys() | dict(self.places).keys()
        return tuple(f for f in self.fields if f.name not in elsewhere)

    def _complete(self, table: pa.Table, piece: Piece, start: int) -> pa.Table:
        rows = table.num_rows
        numbers = pa.array(np.arange(start, start + rows, dtype=np.int64))
        of_place = {ROW_FILE: pa.repeat(self._shown(piece.file), rows), ROW_NUMBER: numbers}
        places = {name: of_place[key] for name, key in self.places}
        columns = [
            pa.repeat(pa.scalar(piece.file.partition[f.name], arrow_type(f.type)), rows)
            if f.name in piece.file.partition
            else places[f.name]
            if f.name in places
            else table.column(f.name)
            for f in self.fields
        ]
        names = [f.name for f in self.fields]
        if self.changes:
            columns.append(_kinds(table, piece.file))
            names.append(KIND_COLUMN)
        if self.sequence:
            first = piece.first + start - piece.start
            columns.append(pa.array(first + np.arange(rows, dtype=np.int64)))
            names.append(SEQUENCE_COLUMN)
        return pa.Table.from_arrays(columns, names=names)

    def _shown(self, file: DataFile) -> str:
        return self.storage.full_path(file.path)

    def _gone(self, file: DataFile) -> ConnectorError:
        return ConnectorError(
            f"File {self._shown(file)} of table '{self.table}' is gone.",
            hint="A clean-up of old files (VACUUM, expired snapshots) has removed it. Read a newer version.",
        )


def _kinds(table: pa.Table, file: DataFile) -> pa.Array:
    if not file.changes:
        (kind,) = file.kinds
        return pa.repeat(pa.scalar(int(kind), pa.int8()), table.num_rows)
    types = table.column(CHANGE_TYPE.name).combine_chunks()
    found = pc.index_in(types, value_set=pa.array(_CHANGE_TYPES))
    if found.null_count:
        raise RecordError(f"There is a change of another kind than {', '.join(_CHANGE_TYPES)}", line=-1)
    return found.cast(pa.int8())


def _of_kinds(table: pa.Table, kinds: frozenset[RowKind]) -> pa.Table:
    wanted = pa.array(sorted(map(int, kinds)), pa.int8())
    return table.filter(pc.is_in(table.column(KIND_COLUMN), value_set=wanted))
