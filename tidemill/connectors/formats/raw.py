"""The ``raw`` format: a record is the bytes of one value; in a file it is a line.

Numbers are big-endian by default. A record whose length is not that of the type is an error.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.api import (
    Block,
    DecodedMessages,
    Decoder,
    DecodeRequest,
    Encoder,
    EncodeRequest,
    Format,
    MessageDecoder,
    RecordError,
    TextEncoder,
)
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type
from tidemill.types.python_values import python_values

_OPTIONS = (
    ConnectorOption(key="charset", default="UTF-8", doc="Encoding of text."),
    ConnectorOption(
        key="endianness",
        default="big-endian",
        choices=("big-endian", "little-endian"),
        doc="Byte order of numbers.",
    ),
)
_NUMBERS: dict[type[t.LogicalType], str] = {
    t.TinyIntType: "i1",
    t.SmallIntType: "i2",
    t.IntType: "i4",
    t.BigIntType: "i8",
    t.FloatType: "f4",
    t.DoubleType: "f8",
    t.BooleanType: "?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCodec:
    """``layout``: the numpy type of a number, as ``>i4``; '' for text and bytes."""

    field: Field
    charset: str
    layout: str

    def read(self, records: list[bytes]) -> pa.Array:
        if isinstance(self.field.type, t.BINARY_TYPES):
            return pa.array(records, pa.binary())
        if not self.layout:
            return pa.array([r.decode(self.charset, "replace") for r in records], pa.string())
        size = np.dtype(self.layout).itemsize
        for line, record in enumerate(records):
            if len(record) != size:
                raise RecordError(
                    f"Size of data received for deserializing {self.field.type} type is not {size}.",
                    line=line,
                )
        numbers = np.frombuffer(b"".join(records), dtype=self.layout)
        return pa.array(numbers.astype(numbers.dtype.newbyteorder("="))).cast(arrow_type(self.field.type))

    def write(self, values: pa.Array) -> list[bytes | None]:
        """One record per value; None for NULL."""
        if isinstance(self.field.type, t.BINARY_TYPES):
            return list(values.to_pylist())
        if not self.layout:
            return [None if v is None else v.encode(self.charset, "replace") for v in python_values(values)]
        size = np.dtype(self.layout).itemsize
        data = np.asarray(values.fill_null(0)).astype(self.layout).tobytes()
        records = [data[i : i + size] for i in range(0, len(data), size)]
        return [r if v else None for r, v in zip(records, values.is_valid().to_pylist(), strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDecoder:
    codec: RawCodec
    wanted: tuple[Field, ...]

    def decode(self, block: Block) -> pa.Table:
        records = [r.removesuffix(b"\r") for r in block.data.to_pybytes().split(b"\n")]
        if not records[-1]:
            records.pop()
        if not self.wanted:
            return pa.table({"$": pa.nulls(len(records))}).select([])
        return pa.Table.from_arrays([self.codec.read(records)], schema=arrow_schema(self.wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMessages:
    """Decodes messages; a message of None is NULL."""

    codec: RawCodec
    wanted: tuple[Field, ...]

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        numbers = np.arange(len(messages))
        if not self.wanted:
            return DecodedMessages(
                table=pa.table({"$": pa.nulls(len(messages))}).select([]), messages=numbers
            )
        present = [i for i, message in enumerate(messages) if message is not None]
        try:
            values = self.codec.read([message for message in messages if message is not None])
        except RecordError as e:
            raise RecordError(e.reason, line=present[e.line]) from None
        if len(present) < len(messages):
            indexes = np.full(len(messages), -1)
            indexes[present] = np.arange(len(present))
            values = values.take(pa.array(indexes, mask=indexes < 0))
        return DecodedMessages(
            table=pa.Table.from_arrays([values], schema=arrow_schema(self.wanted)), messages=numbers
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEncoder(TextEncoder):
    codec: RawCodec

    def texts(self, table: pa.Table) -> pa.Array:
        return pa.array(self._records(table), pa.binary())

    def encode(self, table: pa.Table) -> bytes:
        records = [r for r in self._records(table) if r is not None]
        if len(records) < table.num_rows:
            raise ConnectorError("The raw format cannot write NULL.")
        return b"".join(r + b"\n" for r in records)

    def _records(self, table: pa.Table) -> list[bytes | None]:
        return self.codec.write(table.column(self.codec.field.name).combine_chunks())


class RawFormat(Format):
    identifier = "raw"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "raw"

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        columns = [c for c in table.physical_columns if c.name not in table.partitioned_by]
        if len(columns) != 1:
            raise ValidationError(
                "The 'raw' format only supports single physical column. However the defined schema contains"
                f" multiple physical columns: [{', '.join(c.name for c in columns)}]"
            )
        kind = columns[0].type
        if type(kind) not in _NUMBERS and not isinstance(kind, (*t.CHARACTER_TYPES, *t.BINARY_TYPES)):
            raise ValidationError(f"The 'raw' format doesn't supports '{kind}' as column type.")
        try:
            codecs.lookup(options["charset"])
        except LookupError:
            raise ValidationError(f"Unsupported 'raw.charset' name: {options['charset']}.") from None

    def decoder(self, request: DecodeRequest) -> Decoder:
        return RawDecoder(codec=_codec(request.columns[0], request.options), wanted=request.wanted)

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return RawMessages(codec=_codec(request.columns[0], request.options), wanted=request.wanted)

    def encoder(self, request: EncodeRequest) -> Encoder:
        return RawEncoder(codec=_codec(request.fields[0], request.options))


def _codec(field: Field, table_options: Mapping[str, str]) -> RawCodec:
    options = OptionValues(_OPTIONS, table_options, "raw.")
    order = "<" if options["endianness"].lower() == "little-endian" else ">"
    layout = _NUMBERS.get(type(field.type), "")
    return RawCodec(field=field, charset=options["charset"], layout=order + layout if layout else "")


FORMAT = RawFormat()
