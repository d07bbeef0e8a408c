"""Merges an epoch's changes of one bucket into the bucket's files.

1. The keys of each file are read. A file that has none of the changed keys stays as it is.
2. What is left of the other files, and the rows that came, become one new file.
3. If the bucket would have many files, its small files go into the new file, too, unless they are much larger
   than the smaller ones.

If the table takes deletion vectors, a file with changed keys only gets a longer vector in step 2, as long as
few of its rows are deleted.

So new keys cost a small file, and a change costs the files that hold its key, or their keys alone. Files of
other writers, which may hold rows of every bucket, are read by all buckets of their partition and go away.

Cost: the bucket's files that change are in memory while they are merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.lakehouse.api import VectorWriter
from tidemill.connectors.lakehouse.buckets import bucket_prefix, buckets_of
from tidemill.connectors.lakehouse.changes import DELETED, Partition, Staged, net_changes
from tidemill.connectors.lakehouse.files import DataFile, is_worn
from tidemill.connectors.lakehouse.statistics import column_statistics
from tidemill.connectors.lakehouse.writing import LakeWriter, WritingTask
from tidemill.errors import ConnectorError

_FILES = 8
_SMALL = 16 << 20
_LARGER = 4
_LEAST_BITS = 12
_SPACE = 16
"""Places of a table for each key in it, so that few other keys find one of these."""
_CANDIDATE = "$row"
FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A bucket of a partition: its ``files``, the ``foreign`` ones that it takes its rows from, and where its
    changes are."""

    partition: Partition
    bucket: int
    files: tuple[DataFile, ...] = ()
    foreign: tuple[DataFile, ...] = ()
    staged: tuple[Staged, ...] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in (*self.files, *self.foreign))


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """A file of the bucket, and whether the epoch ``changes`` rows of it; if so, ``gone``: which of its rows
    the table does not have afterwards, and ``columns``: statistics as tokens have them."""

    file: DataFile
    changes: bool = False
    gone: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    columns: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMerger:
    """``keys``, ``buckets``, ``directory`` as of ChangeStager; ``ordered``: the changes of a later task are
    later; ``vectors``: for a table whose files can lose rows without being written anew."""

    writer: LakeWriter
    keys: tuple[str, ...]
    buckets: int
    directory: str
    ordered: bool
    vectors: VectorWriter | None = None

    def merge(self, unit: Unit) -> dict[str, Any]:
        """{"added": [...] as tokens have files, "removed": [paths], "marked": [{"path", "vector", "columns"}]
        as of Marked}; foreign files are not named. ConnectorError where a file cannot be read or written."""
        try:
            return self._merged(unit)
        except (OSError, pa.ArrowException) as e:
            shown = self.writer.storage.full_path("")
            raise ConnectorError(
                f"Cannot merge rows into table '{self.writer.table}' at {shown}: {e}"
            ) from None

    def _merged(self, unit: Unit) -> dict[str, Any]:
        changes = self._changes(unit)
        looked = [self._looked(file, changes) for file in unit.files]
        rewritten = [found for found in looked if self._is_worn(found)]
        stays = [found for found in looked if found not in rewritten]
        if len(stays) >= _FILES:
            rewritten += _smallest(stays)
        parts = [self._rest(found) for found in rewritten]
        parts += (self._own(file, unit.bucket, changes) for file in unit.foreign)
        upserts = changes.filter(pc.invert(changes.column(DELETED))).drop_columns([DELETED])
        added = self._written(unit, pa.concat_tables([*parts, upserts]))
        marked = [found for found in stays if found.changes and found not in rewritten]
        return {
            "added": added,
            "removed": [found.file.path for found in rewritten],
            "marked": self._marks(marked),
        }

    def _is_worn(self, found: _Looked) -> bool:
        """Whether the changed file is to be written anew."""
        if self.vectors is None or not found.changes:
            return found.changes
        return is_worn(int(np.count_nonzero(found.gone)), found.file.rows)

    def _marks(self, marked: Sequence[_Looked]) -> list[dict[str, Any]]:
        if self.vectors is None or not marked:
            return []
        vectors = self.vectors.write(self.writer.storage, [np.flatnonzero(found.gone) for found in marked])
        return [
            {"path": found.file.path, "vector": vector, "columns": found.columns}
            for found, vector in zip(marked, vectors, strict=True)
        ]

    def _changes(self, unit: Unit) -> pa.Table:
        if not unit.staged:
            return self.writer.schema.append(pa.field(DELETED, pa.bool_())).empty_table()
        storage = self.writer.storage
        return net_changes(storage, self.directory, unit.staged, self.keys, ordered=self.ordered)

    def _looked(self, file: DataFile, changes: pa.Table) -> _Looked:
        changes = self._within(file, changes)
        if changes.num_rows:
            with self.writer.storage.open(file.path) as stream:
                opened = parquet.ParquetFile(stream)
                changed = self._are_among(self._columns(opened, self.keys), changes)
                live = file.is_wanted(self.writer.storage, 0, file.rows)
                if live is not None:
                    changed &= live
                if changed.any():
                    gone = changed if live is None else changed | ~live
                    return _Looked(file, changes=True, gone=gone, columns=column_statistics(opened.metadata))
        return _Looked(file)

    def _rest(self, found: _Looked) -> pa.Table:
        """The rows of the file that stay."""
        if not found.changes:
            return self._read(found.file)
        if found.gone.all():
            return self.writer.schema.empty_table()
        with self.writer.storage.open(found.file.path) as stream:
            table = self._columns(parquet.ParquetFile(stream), self.writer.schema.names)
        return table.filter(pa.array(~found.gone))

    def _within(self, file: DataFile, changes: pa.Table) -> pa.Table:
        """The changes whose keys the file's bounds do not rule out."""
        for name in self.keys:
            known = file.bounds.get(name)
            if known is None or known.low is None or known.high is None:
                continue
            kind = changes.schema.field(name).type
            low, high = pa.scalar(known.low, kind), pa.scalar(known.high, kind)
            column = changes.column(name)
            changes = changes.filter(pc.and_(pc.less_equal(low, column), pc.less_equal(column, high)))
        return changes

    def _own(self, file: DataFile, bucket: int, changes: pa.Table) -> pa.Table:
        """The bucket's unchanged rows of a foreign file."""
        table = self._read(file)
        own = table.filter(pa.array(buckets_of(table, self.keys, self.buckets) == bucket))
        return own.filter(pa.array(~self._are_among(own.select(list(self.keys)), changes)))

    def _read(self, file: DataFile) -> pa.Table:
        """Its rows that the table has."""
        with self.writer.storage.open(file.path) as stream:
            table = self._columns(parquet.ParquetFile(stream), self.writer.schema.names)
        live = file.is_wanted(self.writer.storage, 0, file.rows)
        return table if live is None else table.filter(pa.array(live))

    def _columns(self, file: parquet.ParquetFile, names: Sequence[str]) -> pa.Table:
        """As the table has them now: columns that came later are NULL in older files."""
        schema = pa.schema([self.writer.schema.field(name) for name in names])
        stored = stored_names(schema, file.schema_arrow)
        found = file.read(columns=list(stored.values()), use_threads=False)
        columns = [
            found.column(stored[field.name]).cast(field.type)
            if field.name in stored
            else pa.nulls(file.metadata.num_rows, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _are_among(self, keys: pa.Table, changes: pa.Table) -> npt.NDArray[np.bool_]:
        """Which of the keys have changed: by hash at first, then exactly."""
        found = np.zeros(keys.num_rows, np.bool_)
        wanted = changes.select(list(self.keys))
        hashes = hash_columns(keys.columns, keys.num_rows)
        known = np.sort(hash_columns(wanted.columns, wanted.num_rows))
        if not len(known):
            return found
        # A search takes many times as long as a look into a table of the hashes' first bits.
        bits = max(_LEAST_BITS, (len(known) * _SPACE).bit_length())
        begins, rest = np.zeros(1 << bits, np.bool_), np.uint64(64 - bits)
        begins[known >> rest] = True
        candidates = np.flatnonzero(begins[hashes >> rest])
        nearest = np.minimum(np.searchsorted(known, hashes[candidates]), len(known) - 1)
        candidates = candidates[known[nearest] == hashes[candidates]]
        if len(candidates):
            rows = keys.take(pa.array(candidates)).append_column(_CANDIDATE, pa.array(candidates))
            same = rows.join(wanted, list(self.keys), join_type="left semi", use_threads=False)
            found[np.asarray(same.column(_CANDIDATE))] = True
        return found

    def _written(self, unit: Unit, table: pa.Table) -> list[dict[str, Any]]:
        if not table.num_rows:
            return []
        writer = replace(self.writer, prefix=bucket_prefix(unit.bucket, self.buckets))
        task = WritingTask(writer=writer, number=0)
        try:
            task.append(dict(unit.partition), table)
            return task.finish()
        except BaseException:
            task.abandon()
            raise


def _smallest(found: Sequence[_Looked]) -> list[_Looked]:
    """The small files, without those that are much larger than all smaller ones together: to write these anew
    each time would cost more than to read one file more."""
    small = sorted((one for one in found if one.file.size < _SMALL), key=lambda one: one.file.size)
    while len(small) > 1 and small[-1].file.size > _LARGER * sum(one.file.size for one in small[:-1]):
        small.pop()
    return small


def stored_names(wanted: pa.Schema, stored: pa.Schema) -> dict[str, str]:
    """The file's name of each column of ``wanted`` that the file has. A table format may know columns by ids,
    so that a column can get another name. If only one of the two schemas has ids, names identify the
    columns."""
    ids = {_id(field): field.name for field in stored if _id(field)}
    named = {field.name: ids.get(_id(field)) if ids and _id(field) else field.name for field in wanted}
    return {name: found for name, found in named.items() if found is not None and found in stored.names}


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found
