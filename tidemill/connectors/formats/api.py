"""The interface of formats: how bytes are cut into records, decoded into Arrow and encoded again.

The driver creates decoders and encoders and pickles them; they run in Spark Python workers and hold
plain values only. A decoder gets whole records (``Block``) and returns one Arrow table per block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.formats.text_lines import line_bytes
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError
from tidemill.types.logical import Field, LogicalType


class Framing(Enum):
    """How records lie in a file: LINES end with a newline, QUOTED lines may hold newlines inside
    quotes, ROW_GROUPS are files whose offsets count rows; MESSAGES lie in queues and in no files."""

    LINES = "lines"
    QUOTED = "quoted"
    ROW_GROUPS = "row groups"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRequest:
    """``columns``: all fields of a record, in record order; ``wanted``: the fields to return; ``metadata``:
    fields to return after them, each with its metadata key of the format. ``options``: of the table, with
    full keys; ``format_options`` reads those of the format. ``numbered``: return ``$line``, too (see
    ``Decoder``), if the format can tell it."""

    columns: tuple[Field, ...]
    wanted: tuple[Field, ...]
    metadata: tuple[tuple[Field, str], ...]
    options: Mapping[str, str]
    time_zone: str
    numbered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeRequest:
    """``fields``: the columns of the tables to write; ``changelog``: the tables also have ``$kind``."""

    fields: tuple[Field, ...]
    changelog: bool
    options: Mapping[str, str]
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole records of one file. Text formats: ``data`` holds the bytes ``start``..``end`` of the file; lines
    end with LF or CR LF, and the last line of a file may lack its end.
    Columnar formats: the rows ``start``..``end`` of the open file ``source``."""

    data: pa.Buffer
    source: pa.NativeFile | None = None
    start: int = 0
    end: int = 0


class RecordError(Exception):
    """A record that cannot be decoded. ``line`` counts from 0 within the block, -1 is unknown. ``record``:
    its text if ``reason`` does not show it; ``hint`` says what to do."""

    def __init__(self, reason: str, *, line: int, field: str = "", record: str = "", hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.field = field
        self.record = record
        self.hint = hint


class Decoder(Protocol):
    def decode(self, block: Block) -> pa.Table:
        """The rows of ``block`` in order. Columns: wanted fields, metadata fields, ``$line`` (int64, the
        number of the row's line in the block) if requested, ``$kind`` (int8) if the format is a changelog
        format. RecordError if a record does not fit."""
        ...


Indexes = npt.NDArray[np.int64]
LINE_COLUMN = "$line"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedMessages:
    """``table``: as ``Decoder`` returns it, without ``$line``; ``messages``: the number of each row's
    message."""

    table: pa.Table
    messages: Indexes


class MessageDecoder(Protocol):
    def decode(self, messages: Sequence[bytes | None]) -> DecodedMessages:
        """The rows of a queue's messages, in order; a message gives no, one or several rows. RecordError if a
        message does not fit; its line is the message's number."""
        ...


class TableWriter(Protocol):
    """Writes the tables of one file in order; ``close`` completes the file, not the stream."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class Encoder(Protocol):
    def open(self, stream: pa.NativeFile) -> TableWriter:
        """Starts a file. Its tables have the request's fields, then ``$kind`` for a changelog."""
        ...


class TextEncoder:
    """An encoder whose files are the concatenated bytes of its records."""

    __slots__ = ()

    def texts(self, table: pa.Table) -> pa.Array:
        """One record per row, without its newline; NULL is a queue's message without bytes (a tombstone)."""
        raise NotImplementedError

    def encode(self, table: pa.Table) -> bytes | pa.Buffer:
        """The records of ``table``, each with its end of line."""
        return line_bytes(self.texts(table)) if table.num_rows else pa.py_buffer(b"")

    def open(self, stream: pa.NativeFile) -> TableWriter:
        return _TextWriter(self, stream)


class _TextWriter:
    def __init__(self, encoder: TextEncoder, stream: pa.NativeFile) -> None:
        self._encoder = encoder
        self._stream = stream

    def write(self, table: pa.Table) -> None:
        self._stream.write(self._encoder.encode(table))

    def close(self) -> None:
        """Text needs no end."""


class Format(Protocol):
    """A format; stateless, like a Connector. ``extension``: of its files. Formats inherit the defaults:
    lines of text, no metadata, insert-only."""

    identifier: str
    options: tuple[ConnectorOption, ...]
    extension: str
    passes_options: bool = False
    """Whether undeclared keys are passed to a library."""
    is_positional: bool = False
    """Whether columns are matched with the values of a record by position."""

    def framing(self, options: OptionValues) -> Framing:
        return Framing.LINES

    def quote(self, options: OptionValues) -> str:
        """The quote character of QUOTED framing; '' if quotes have no meaning."""
        return ""

    def completed(self, options: Mapping[str, str], topic: str, part: str) -> Mapping[str, str]:
        """``options`` with defaults that depend on the queue's topic; ``part``: key or value."""
        return options

    def validate(self, table: CatalogTable, options: OptionValues, *, role: str) -> None:
        """ValidationError for options or columns that do not fit; ``role`` is source or sink."""
        return

    def metadata(self) -> Mapping[str, LogicalType]:
        """Readable metadata keys and their types."""
        return {}

    def kinds(self) -> frozenset[RowKind]:
        """The row kinds that the format reads; with ALL_KINDS its tables have ``$kind``."""
        return INSERT_ONLY

    def group_rows(self, file: pa.NativeFile) -> list[int]:
        """ROW_GROUPS framing: rows of each row group or stripe; text has none."""
        return []

    def decoder(self, request: DecodeRequest) -> Decoder: ...

    def message_decoder(self, request: DecodeRequest) -> MessageDecoder:
        """The decoder of a queue's messages. ValidationError if the format is for files only."""
        raise ValidationError(
            f"Could not find any format factory for identifier '{self.identifier}' that implements"
            " 'org.apache.flink.table.factories.DeserializationFormatFactory'.",
            hint=f"'{self.identifier}' is a format of files.",
        )

    def encoder(self, request: EncodeRequest) -> Encoder: ...


def format_options(declared: Format, options: Mapping[str, str]) -> OptionValues:
    """The options of format ``declared`` within a table's options."""
    return OptionValues(declared.options, options, f"{declared.identifier}.")


def full_keys(declared: Format) -> tuple[ConnectorOption, ...]:
    """The format's options with the keys of table options, as ``csv.null-literal``; a map if any key is
    allowed."""
    prefix = f"{declared.identifier}."
    if declared.passes_options:
        return (ConnectorOption(key=prefix, kind="map"),)
    return tuple(replace(option, key=prefix + option.key) for option in declared.options)
