"""The ``parquet`` format. Options after ``parquet.`` are the writer's: compression, utc-timezone."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
from pyarrow import parquet

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    Block,
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    Framing,
)
from tidemill.connectors.formats.columnar.parquet_footer import stored_columns
from tidemill.connectors.formats.columnar.tables import (
    check_names,
    file_schema,
    from_file_table,
    to_file_table,
)
from tidemill.connectors.formats.native import StoredColumns
from tidemill.connectors.option_values import OptionValues
from tidemill.spark_internals.class_names import PARQUET
from tidemill.types.logical import Field

_OPTIONS = (
    ConnectorOption(
        key="compression",
        default="snappy",
        choices=("snappy", "gzip", "zstd", "lz4", "brotli", "none", "uncompressed"),
        doc="Compression codec of pages.",
    ),
    ConnectorOption(key="utc-timezone", kind="bool", default="true", doc="Accepted; times are in UTC."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetDecoder:
    """``declared``: the names of all columns that a file may have."""

    wanted: tuple[Field, ...]
    declared: tuple[str, ...]

    def decode(self, block: Block) -> pa.Table:
        file = _opened(block.source)
        names = set(file.schema_arrow.names)
        check_names(self.wanted, self.declared, names)
        columns = [f.name for f in self.wanted if f.name in names]
        ends = list(accumulate(_group_rows(file)))
        starts = [0, *ends]
        groups = [i for i, end in enumerate(ends) if end > block.start and starts[i] < block.end]
        if not groups:
            return from_file_table(file.schema_arrow.empty_table(), self.wanted)
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        if not columns:
            rows = ends[groups[-1]] - starts[groups[0]]
            table = pa.table({"$": pa.nulls(rows)})
        return from_file_table(
            table.slice(block.start - starts[groups[0]], block.end - block.start), self.wanted
        )


def _opened(source: pa.NativeFile) -> parquet.ParquetFile:
    """Opens a file. INT96 is read as microseconds, since 64-bit nanoseconds cover only 1677 to 2262."""
    return parquet.ParquetFile(source, coerce_int96_timestamp_unit="us")


def _group_rows(file: parquet.ParquetFile) -> list[int]:
    return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]


class _ParquetWriter:
    def __init__(self, stream: pa.NativeFile, fields: tuple[Field, ...], compression: str) -> None:
        self._fields = fields
        self._writer = parquet.ParquetWriter(stream, file_schema(fields), compression=compression)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(to_file_table(table, self._fields))

    def close(self) -> None:
        self._writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetEncoder:
    fields: tuple[Field, ...]
    compression: str

    def open(self, stream: pa.NativeFile) -> _ParquetWriter:
        return _ParquetWriter(stream, self.fields, self.compression)


class ParquetFormat(Format):
    identifier = "parquet"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "parquet"
    passes_options = True
    spark_class = PARQUET

    def framing(self, options: OptionValues) -> Framing:
        return Framing.ROW_GROUPS

    def group_rows(self, file: pa.NativeFile) -> list[int]:
        return _group_rows(_opened(file))

    def stored(self, file: pa.NativeFile) -> StoredColumns | None:
        return stored_columns(_opened(file))

    def decoder(self, request: DecodeRequest) -> Decoder:
        return ParquetDecoder(wanted=request.wanted, declared=tuple(f.name for f in request.columns))

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = OptionValues(_OPTIONS, request.options, "parquet.")
        name = options["compression"].lower()
        return ParquetEncoder(fields=request.fields, compression="none" if name == "uncompressed" else name)


FORMAT = ParquetFormat()
