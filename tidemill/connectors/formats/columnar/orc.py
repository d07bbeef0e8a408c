"""The ``orc`` format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

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
from tidemill.connectors.formats.columnar.orc_footer import stored_columns
from tidemill.connectors.formats.columnar.tables import (
    check_names,
    file_schema,
    from_file_table,
    to_file_table,
)
from tidemill.connectors.formats.native import StoredColumns
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError
from tidemill.spark_internals.class_names import ORC
from tidemill.types import logical as t
from tidemill.types.logical import Field

_OPTIONS = (
    ConnectorOption(
        key="compress",
        default="zlib",
        choices=("none", "uncompressed", "zlib", "snappy", "lz4", "zstd"),
        doc="Compression codec of streams.",
    ),
)


_FARTHEST = (1 << 63) // 1000
"""The most microseconds from 1970 that still fit 64 bits as nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcDecoder:
    """``declared``: the names of all columns that a file may have."""

    wanted: tuple[Field, ...]
    declared: tuple[str, ...]

    def decode(self, block: Block) -> pa.Table:
        file = orc.ORCFile(block.source)
        check_names(self.wanted, self.declared, file.schema.names)
        columns = [f.name for f in self.wanted if f.name in file.schema.names]
        if not columns:
            return from_file_table(pa.table({"$": pa.nulls(block.end - block.start)}), self.wanted)
        parts, at = [], 0
        for number in range(file.nstripes):
            stripe = pa.table(file.read_stripe(number, columns=columns))
            first, last = max(block.start - at, 0), min(block.end - at, stripe.num_rows)
            if last > first:
                parts.append(stripe.slice(first, last - first))
            at += stripe.num_rows
            if at >= block.end:
                break
        table = pa.concat_tables(parts) if parts else file.schema.empty_table()
        return from_file_table(table, self.wanted)


@singledispatch
def _stored(kind: t.LogicalType) -> t.LogicalType:
    """ORC has no time of day: TIME is stored as its milliseconds."""
    return kind


@_stored.register
def _(kind: t.TimeType) -> t.LogicalType:
    return t.INT


@_stored.register
def _(kind: t.ArrayType) -> t.LogicalType:
    return replace(kind, element=_stored(kind.element))


@_stored.register
def _(kind: t.MapType) -> t.LogicalType:
    return replace(kind, key=_stored(kind.key), value=_stored(kind.value))


@_stored.register
def _(kind: t.MultisetType) -> t.LogicalType:
    return replace(kind, element=_stored(kind.element))


@_stored.register
def _(kind: t.RowType) -> t.LogicalType:
    return replace(kind, fields=tuple(Field(f.name, _stored(f.type)) for f in kind.fields))


def _check_times(name: str, values: pa.Array) -> None:
    """ConnectorError if a time does not fit the reader's nanoseconds of 64 bits, and could not be read
    back."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        number = values.cast(pa.int64())
        unreadable = values.filter(pc.or_(pc.less(number, -_FARTHEST), pc.greater(number, _FARTHEST)))
        if len(unreadable):
            raise ConnectorError(
                f"Column '{name}': {unreadable[0]} cannot be written to ORC: a file with times outside "
                "of 1677-09-21 to 2262-04-11 cannot be read again.",
                hint="Write Parquet, or another time, or NULL.",
            )
    elif pa.types.is_struct(kind):
        for field, part in zip(kind, values.flatten(), strict=True):
            _check_times(f"{name}.{field.name}", part)
    elif pa.types.is_map(kind):
        _check_times(name, values.keys)
        _check_times(name, values.items)
    elif pa.types.is_list(kind):
        _check_times(name, values.flatten())


class _OrcWriter:
    def __init__(self, stream: pa.NativeFile, fields: tuple[Field, ...], compression: str) -> None:
        self._fields = tuple(Field(f.name, _stored(f.type)) for f in fields)
        self._writer = orc.ORCWriter(stream, compression=compression)
        self._started = False

    def write(self, table: pa.Table) -> None:
        stored = to_file_table(table, self._fields)
        for name, column in zip(stored.column_names, stored.columns, strict=True):
            _check_times(name, column.combine_chunks())
        self._started = True
        self._writer.write(stored)

    def close(self) -> None:
        if not self._started:
            self._writer.write(file_schema(self._fields).empty_table())
        self._writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcEncoder:
    fields: tuple[Field, ...]
    compression: str

    def open(self, stream: pa.NativeFile) -> _OrcWriter:
        return _OrcWriter(stream, self.fields, self.compression)


class OrcFormat(Format):
    identifier = "orc"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "orc"
    passes_options = True
    spark_class = ORC

    def framing(self, options: OptionValues) -> Framing:
        return Framing.ROW_GROUPS

    def group_rows(self, file: pa.NativeFile) -> list[int]:
        """One group for the whole file: a stripe's rows are known only by reading it."""
        return [orc.ORCFile(file).nrows]

    def stored(self, file: pa.NativeFile) -> StoredColumns | None:
        return stored_columns(file)

    def decoder(self, request: DecodeRequest) -> Decoder:
        return OrcDecoder(wanted=request.wanted, declared=tuple(f.name for f in request.columns))

    def encoder(self, request: EncodeRequest) -> Encoder:
        options = OptionValues(_OPTIONS, request.options, "orc.")
        name = options["compress"].lower()
        return OrcEncoder(fields=request.fields, compression="uncompressed" if name == "none" else name)


FORMAT = OrcFormat()
