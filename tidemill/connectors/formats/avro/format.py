"""The ``avro`` format: object container files, or messages that are a record each.

A file is read with the schema in its header. Messages have no schema: they are read with the schema that
Flink derives from the table.
"""

from __future__ import annotations

import io
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
    Framing,
    MessageDecoder,
    TextEncoder,
)
from tidemill.connectors.formats.avro.container import (
    CODECS,
    blocks,
    read_header,
    records,
    written_block,
    written_header,
)
from tidemill.connectors.formats.avro.derive import Derivation, derived
from tidemill.connectors.formats.avro.row_reader import RowReader, no_columns
from tidemill.connectors.formats.avro.row_writer import RowWriter
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError
from tidemill.types.logical import Field

_BLOCK = 64_000
"""Bytes of records in a block before it is compressed, as Avro's writer has it."""
LEGACY = ConnectorOption(
    key="timestamp_mapping.legacy",
    kind="bool",
    default="true",
    doc="TIMESTAMP is Avro's timestamp; false: its local timestamp, and TIMESTAMP_LTZ its timestamp.",
)
_OPTIONS = (
    ConnectorOption(
        key="codec", default="snappy", choices=tuple(CODECS), doc="Of files: how blocks are compressed."
    ),
    ConnectorOption(key="encoding", default="binary", choices=("binary", "json"), doc="Of messages: binary."),
    LEGACY,
    ConnectorOption(key="open.fastread", kind="bool", default="false", doc="Accepted; there is one reader."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFileDecoder:
    """``declared``: the names of all columns that a file may have."""

    wanted: tuple[Field, ...]
    declared: tuple[str, ...]

    def decode(self, block: Block) -> pa.Table:
        if not self.wanted:
            return no_columns(block.end - block.start)
        file = block.source
        header = read_header(file)
        reader = RowReader.of(header.schema, self.wanted, self.declared)
        decoded, first_row = [], 0
        for part in blocks(file, header):
            first, last = max(block.start - first_row, 0), min(block.end - first_row, part.rows)
            if last > first:
                stream = io.BytesIO(records(file, header, part))
                decoded += [reader.one(stream) for _ in range(last)][first:]
            first_row += part.rows
            if first_row >= block.end:
                break
        return reader.table(decoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroMessages:
    """``schema``: the writer's schema of all messages. A message of None gives no row."""

    schema: str
    wanted: tuple[Field, ...]
    declared: tuple[str, ...]

    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        numbers = np.array([i for i, m in enumerate(messages) if m is not None], dtype=np.int64)
        reader = RowReader.of(self.schema, self.wanted, self.declared)
        table = reader.numbered([(i, m) for i, m in enumerate(messages) if m is not None])
        return DecodedMessages(table=table, messages=numbers)


class _AvroFile:
    def __init__(self, stream: pa.NativeFile, writer: RowWriter, codec: str) -> None:
        self._stream = stream
        self._writer = writer
        start, self._header = written_header(writer.text, codec)
        self._waiting: list[bytes] = []
        self._size = 0
        stream.write(start)

    def write(self, table: pa.Table) -> None:
        for record in self._writer.records(table):
            self._waiting.append(record)
            self._size += len(record)
            if self._size >= _BLOCK:
                self._flush()

    def close(self) -> None:
        if self._waiting:
            self._flush()

    def _flush(self) -> None:
        self._stream.write(written_block(self._header, len(self._waiting), b"".join(self._waiting)))
        self._waiting, self._size = [], 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroEncoder(TextEncoder):
    """A message is a record; a file has a header, too."""

    writer: RowWriter
    codec: str

    def texts(self, table: pa.Table) -> pa.Array:
        return pa.array(self.writer.records(table), pa.binary())

    def open(self, stream: pa.NativeFile) -> _AvroFile:
        return _AvroFile(stream, self.writer, self.codec)


class AvroFormat(Format):
    identifier = "avro"
    options: tuple[ConnectorOption, ...] = _OPTIONS
    extension = "avro"

    def framing(self, options: OptionValues) -> Framing:
        return Framing.ROW_GROUPS

    def group_rows(self, file: pa.NativeFile) -> list[int]:
        header = read_header(file)
        return [block.rows for block in blocks(file, header)]

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        if options["encoding"].lower() != "binary":
            raise NotSupportedError("'avro.encoding' = 'json'", hint="Use 'format' = 'json', or binary.")
        columns = [c for c in table.physical_columns if c.name not in table.partitioned_by]
        derived(tuple(Field(c.name, c.type) for c in columns), _derivation(options))

    def decoder(self, request: DecodeRequest) -> Decoder:
        return AvroFileDecoder(wanted=request.wanted, declared=tuple(f.name for f in request.columns))

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        return AvroMessages(
            schema=_derived(request.columns, request.options),
            wanted=request.wanted,
            declared=tuple(f.name for f in request.columns),
        )

    def encoder(self, request: EncodeRequest) -> Encoder:
        writer = RowWriter(fields=request.fields, text=_derived(request.fields, request.options))
        options = OptionValues(_OPTIONS, request.options, "avro.")
        return AvroEncoder(writer=writer, codec=options["codec"].lower())


def _derived(fields: tuple[Field, ...], options: Mapping[str, str]) -> str:
    return derived(fields, _derivation(OptionValues(_OPTIONS, options, "avro.")))


def _derivation(options: OptionValues) -> Derivation:
    return Derivation(identifier="avro", legacy=options["timestamp_mapping.legacy"])


FORMAT = AvroFormat()
