"""Decodes blocks of CSV records into Arrow, as fast as Arrow's reader and as exactly as Flink's.

The fast path gives plain blocks to the compiled core and other blocks to Arrow's CSV reader. Both return
whole numbers, floats and decimals typed, and all else as text that ``text_types`` converts. The fast path
requires that Arrow and Flink agree on every byte: no escape character, no comments, quotes that open and
close at field borders, no hexadecimal digits that Arrow would accept. All other blocks, and all failures, go
to ``records``, which is the authority.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tidemill.connectors.formats.api import Block, RecordError
from tidemill.connectors.formats.csv.dialect import Dialect
from tidemill.connectors.formats.csv.records import Record, RecordReader
from tidemill.connectors.formats.quotes import Bytes, quotes_are_plain
from tidemill.connectors.formats.text_lines import is_utf8
from tidemill.connectors.formats.text_scalars import CSV_RULES, TextRules
from tidemill.connectors.formats.text_types import convert_text
from tidemill.native.csv import plain_csv
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type

_WHOLE = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)
_FLOATS = (t.FloatType, t.DoubleType)
_NUMBERS: tuple[type[t.LogicalType], ...] = (*_WHOLE, *_FLOATS)
_NESTED = (t.ArrayType, t.RowType)
_PIECE = 1 << 18
_BLOCK = 1 << 21
"""Bytes of a chunk that fits a processor's cache while it is searched, and while Arrow parses it."""
_BOM = b"\xef\xbb\xbf"
_NO_UTF8 = re.compile("[\ud800-\udfff]")
_EMPTY = "With 'csv.null-literal' = '' an empty field is NULL."


class _Careful(Exception):
    """The fast path does not apply to this block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Whether a block has only ASCII, has a quote, and has an ``x`` (Arrow reads ``0x10`` as a number)."""

    ascii: bool
    quotes: bool
    x: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDecoder:
    """``columns``: all fields of a record, in order; ``wanted``: the fields to return, matched by name."""

    columns: tuple[Field, ...]
    wanted: tuple[Field, ...]
    dialect: Dialect

    def decode(self, block: Block) -> pa.Table:
        """The rows of ``block``. A byte order mark counts only at the start of the file; elsewhere it is
        text."""
        marked = block.start == 0 and bytes(block.data[:3]) == _BOM
        data = block.data.slice(3) if marked else block.data
        try:
            return self._fast(data)
        except (_Careful, pa.ArrowInvalid):
            return self._careful(data)

    @property
    def _rules(self) -> TextRules:
        return replace(
            CSV_RULES,
            element_delimiter=self.dialect.element_delimiter,
            null_element=self.dialect.null,
            null_bad_elements=self.dialect.lenient,
        )

    def _fast(self, data: pa.Buffer) -> pa.Table:
        self._check_dialect(data)
        raw = self._plain(data) or self._by_arrow(data)
        arrays = []
        for field, values in zip(self.wanted, raw, strict=True):
            if isinstance(field.type, _NUMBERS) and values.type == pa.string():
                values = _numbers(values, arrow_type(field.type))
            if values.type == arrow_type(field.type):
                if isinstance(field.type, _FLOATS) and not pc.all(pc.is_finite(values)).as_py():
                    raise _Careful  # Arrow and Java spell NaN and the infinities differently
                arrays.append(values)
                continue
            converted = convert_text(values, field.type, self._rules)
            if converted.bad is not None and not self.dialect.lenient:
                raise _Careful
            arrays.append(converted.values)
        return pa.Table.from_arrays(arrays, schema=arrow_schema(self.wanted))

    def _plain(self, data: pa.Buffer) -> list[pa.Array] | None:
        """The wanted columns from the compiled core, numbers typed, all else as text; None if the core
        refuses ``data``."""
        if any(isinstance(f.type, t.DecimalType) for f in self.wanted):
            return None  # Arrow parses decimals from text directly
        column_types = {
            f.name: arrow_type(f.type) if isinstance(f.type, _NUMBERS) else pa.string() for f in self.wanted
        }
        arrays = plain_csv(
            data,
            [column_types.get(f.name) for f in self.columns],
            delimiter=self.dialect.delimiter,
            quote=self.dialect.quote,
            null=self.dialect.null,
        )
        if arrays is None:
            return None
        by_name = dict(zip((f.name for f in self.columns if f.name in column_types), arrays, strict=True))
        return [by_name[f.name] for f in self.wanted]

    def _by_arrow(self, data: pa.Buffer) -> list[pa.Array]:
        raw = self._read(data, self._check(data))
        if len(self.columns) > 1 and _has_empty_row(raw) and _has_empty_line(data):
            raise _Careful  # for Arrow an empty line has all fields, for Flink one
        return [pa.nulls(0, c.type) if c.num_chunks == 0 else c.combine_chunks() for c in raw.columns]

    def _check_dialect(self, data: pa.Buffer) -> None:
        dialect = self.dialect
        if dialect.escape or dialect.comments or not self.wanted or data.size >= 1 << 31:
            raise _Careful
        if not (dialect.delimiter + dialect.quote).isascii():
            raise _Careful  # Arrow takes single bytes
        if dialect.null is not None and any(isinstance(f.type, _NESTED) for f in self.wanted):
            raise _Careful  # there the null literal means an element, not the whole text

    def _check(self, data: pa.Buffer) -> _Seen:
        """The special bytes of ``data``. Raises _Careful if Arrow and Flink would read the block
        differently."""
        dialect = self.dialect
        content = _seen(data, dialect.quote.encode())
        if bytes(data[: len(_BOM)]) == _BOM or not (content.ascii or is_utf8(data)):
            raise _Careful  # Arrow would drop the mark, and not check columns that are not read
        if content.quotes:
            raw = np.frombuffer(data, dtype=np.uint8)
            if not quotes_are_plain(raw, np.flatnonzero(raw == ord(dialect.quote)), dialect.delimiter):
                raise _Careful
        return content

    def _read(self, data: pa.Buffer, content: _Seen) -> pa.Table:
        """Reads in small blocks if every newline ends a record and no record is longer than a block."""
        if not content.quotes and data.size > _BLOCK:
            with suppress(pa.ArrowInvalid):
                return self._read_by(_BLOCK, data, content)
        return self._read_by(max(data.size + 1, 16), data, content)

    def _read_by(self, block: int, data: pa.Buffer, content: _Seen) -> pa.Table:
        dialect = self.dialect
        raw_type = self._raw_types(data, content)
        return csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=block,
                column_names=[f.name for f in self.columns],
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote if content.quotes else False,
                double_quote=True,
                newlines_in_values=content.quotes,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,  # all of it was checked
                column_types={f.name: raw_type(f.type) for f in self.wanted},
                include_columns=[f.name for f in self.wanted],
                null_values=[] if dialect.null is None else [dialect.null],
                strings_can_be_null=dialect.null is not None,
                quoted_strings_can_be_null=True,
            ),
        )

    def _raw_types(self, data: pa.Buffer, seen: _Seen) -> Callable[[t.LogicalType], pa.DataType]:
        """What Arrow is asked for: numbers as such, unless they may be hexadecimal; all else as text."""
        typed: tuple[type[t.LogicalType], ...] = () if seen.x else _NUMBERS
        if any(isinstance(f.type, t.DecimalType) for f in self.wanted):
            # Arrow would trim blanks around a decimal, Flink does not.
            padded = _has_padding(np.frombuffer(data, dtype=np.uint8), self.dialect)
            typed = typed if padded else (*typed, t.DecimalType)
        return lambda kind: arrow_type(kind) if isinstance(kind, typed) else pa.string()

    def _careful(self, data: pa.Buffer) -> pa.Table:
        """Record by record; a record that fails raises RecordError unless errors are ignored."""
        text, damaged = _text(data)
        records = [r for r in RecordReader(text, self.dialect, len(self.columns)) if self._keep(r, damaged)]
        places = {f.name: i for i, f in enumerate(self.columns)}
        arrays = [self._column(f, places[f.name], records) for f in self.wanted]
        if not arrays:
            return pa.table({"$": pa.nulls(len(records))}).select([])
        return pa.Table.from_arrays(arrays, schema=arrow_schema(self.wanted))

    def _keep(self, record: Record, damaged: bool) -> bool:
        error = record.error
        if damaged and any(_NO_UTF8.search(field) for field in record.fields):
            error = "Invalid UTF-8."
        if not error and len(record.fields) < len(self.columns) and not self.dialect.lenient:
            error = f"Row length mismatch. {len(self.columns)} fields expected but was {len(record.fields)}."
        if error and not self.dialect.lenient:
            raise RecordError(error, line=record.line, record=_shown(record))
        return not error

    def _column(self, field: Field, index: int, records: list[Record]) -> pa.Array:
        null = None if isinstance(field.type, _NESTED) else self.dialect.null
        texts = [
            None if index >= len(r.fields) or r.fields[index] == null else r.fields[index] for r in records
        ]
        converted = convert_text(pa.array(texts, pa.string()), field.type, self._rules)
        if converted.bad is not None and not self.dialect.lenient:
            record = records[int(np.argmax(converted.bad))]
            raise RecordError(
                f'Fail to deserialize at field: {field.name}. "{record.fields[index]}" is not {field.type}.',
                line=record.line,
                field=field.name,
                record=_shown(record),
                hint="" if record.fields[index] or isinstance(field.type, _NESTED) else _EMPTY,
            )
        return converted.values


def _shown(record: Record) -> str:
    return " | ".join(record.fields)[:200].encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _seen(data: pa.Buffer, quote: bytes) -> _Seen:
    ascii_only, quotes, x = True, False, False
    for start in range(0, data.size, _PIECE):
        piece: bytes = data.slice(start, min(_PIECE, data.size - start)).to_pybytes()
        ascii_only = ascii_only and piece.isascii()
        quotes = quotes or (bool(quote) and quote in piece)
        x = x or b"x" in piece or b"X" in piece
    return _Seen(ascii=ascii_only, quotes=quotes, x=x)


def _has_empty_row(table: pa.Table) -> bool:
    """Whether some row has no text in any column."""
    rows = None
    for column in table.columns:
        empty = column.is_null()
        if column.type == pa.string():
            empty = pc.or_kleene(empty, pc.equal(pc.binary_length(column), 0))
        rows = empty if rows is None else pc.and_(rows, empty)
        if not pc.any(rows).as_py():
            return False
    return rows is not None


def _has_empty_line(data: pa.Buffer) -> bool:
    """Whether the text has an empty line, even within quotes."""
    text: bytes = data.to_pybytes()
    return text[:1] in (b"\n", b"\r") or any(ends in text for ends in (b"\n\n", b"\n\r", b"\r\r"))


def _numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parses numbers as Arrow's reader does. Refuses texts with an x: Flink reads no hexadecimal numbers."""
    text = values.buffers()[2]
    data = b"" if text is None else text.to_pybytes()
    if b"x" in data or b"X" in data:
        raise _Careful
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return pc.ascii_trim(values, " \t").cast(kind)


def _has_padding(raw: Bytes, dialect: Dialect) -> bool:
    """Whether a blank stands at the edge of a field."""
    blanks = np.flatnonzero(raw == ord(" "))
    if not len(blanks):
        return False
    edges = np.zeros(256, dtype=bool)
    edges[[10, 13, 32, *dialect.delimiter.encode(), *dialect.quote.encode()]] = True
    before = edges[raw[np.maximum(blanks - 1, 0)]] | (blanks == 0)
    after = edges[raw[np.minimum(blanks + 1, len(raw) - 1)]] | (blanks == len(raw) - 1)
    return bool(before.any() or after.any())


def _text(data: pa.Buffer) -> tuple[str, bool]:
    """The text, with invalid UTF-8 bytes as lone surrogates, and whether there are such bytes."""
    raw: bytes = data.to_pybytes()
    try:
        return raw.decode("utf-8"), False
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape"), True
