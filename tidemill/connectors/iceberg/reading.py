"""Reads Iceberg's data files: columns are found by their ids, whatever they are called in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import parquet

from tidemill.connectors.formats.api import Block, Decoder
from tidemill.connectors.formats.columnar.parquet import ParquetDecoder
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.reading import LakeReader
from tidemill.types.logical import Field

_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergReader(LakeReader):
    """``ids``: of the columns, by name."""

    ids: Mapping[str, int]

    def decoder(self, file: pa.NativeFile, data: DataFile) -> Decoder:
        """A file without ids, as it was before it came to Iceberg, has the columns by name."""
        wanted = self.stored(data)
        stored = parquet.ParquetFile(file).schema_arrow
        names = {int(f.metadata[_ID]): f.name for f in stored if f.metadata and _ID in f.metadata}
        found = {f.name: names.get(self.ids[f.name], "") for f in wanted} if names else {}
        renamed = tuple(Field(found.get(f.name, f.name) or _absent(f.name), f.type) for f in wanted)
        plain = ParquetDecoder(wanted=renamed, declared=tuple(f.name for f in renamed))
        return _Renamed(plain, tuple(f.name for f in wanted))


def _absent(name: str) -> str:
    """A name that no column has: another one may have taken ``name`` over."""
    return f"\0{name}"


@dataclass(frozen=True, slots=True)
class _Renamed:
    plain: ParquetDecoder
    names: tuple[str, ...]

    def decode(self, block: Block) -> pa.Table:
        return self.plain.decode(block).rename_columns(list(self.names))
