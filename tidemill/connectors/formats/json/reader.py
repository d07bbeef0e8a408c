"""Reads lines of JSON objects into Arrow columns of given Flink types.

It tries four tiers in turn; each reads a block exactly, or refuses it. 1. The compiled core, for flat
columns.
2. Arrow's reader with native types. 3. Arrow's reader with every scalar as text (for data that quotes all
values). 4. Python, object by object: the authority, and the only tier that reports or skips errors. Cost per
row: about 0.1 µs, 0.3 µs, 0.6 µs, 10 µs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.json.values import FieldError, JsonRules, Number, compact, convert_row
from tidemill.connectors.formats.text_lines import is_utf8
from tidemill.connectors.formats.text_types import convert_text
from tidemill.native.json import plain_json
from tidemill.types import logical as t
from tidemill.types.physical import arrow_schema, arrow_type

_NUMBERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.FloatType, t.DoubleType)
_NATIVE = (t.BooleanType, *_NUMBERS, t.CharType, t.VarCharType)
_NESTED = (t.ArrayType, t.RowType, t.MapType, t.MultisetType)
_NULL_LINE = re.compile(rb"\n[ \t\r]*null")
_BOM = b"\xef\xbb\xbf"
TOO_DEEP = "It is nested too deeply (Flink's parser gives up after 1000 levels)."


class _Refused(Exception):
    """This tier does not read the block exactly."""


_REFUSALS = (_Refused, pa.ArrowInvalid, pa.ArrowNotImplementedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRows:
    """``table``: one row per object; ``lines``: the line each row came from."""

    table: pa.Table
    lines: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReader:
    """``error_prefix``: the start of the error text for a malformed record."""

    fields: tuple[t.Field, ...]
    rules: JsonRules
    error_prefix: str = "Failed to deserialize JSON"

    def read(self, data: pa.Buffer) -> JsonRows:
        """The rows of ``data``. RecordError for the first record that does not fit, unless rules are
        lenient."""
        with suppress(*_REFUSALS):
            return self._plain(data.slice(len(_BOM)) if bytes(data[: len(_BOM)]) == _BOM else data)
        raw = data.to_pybytes().removeprefix(_BOM)
        for textual in (False, True):
            with suppress(*_REFUSALS):
                return self._vectorised(raw, textual=textual)
        return self._careful(raw)

    def _plain(self, data: pa.Buffer) -> JsonRows:
        """Reads with the compiled core: every line is one object, so a row's number is its line's number."""
        if self.rules.fail_on_missing or any(isinstance(f.type, _NESTED) for f in self.fields):
            raise _Refused
        column_types = {
            f.name: arrow_type(f.type) if isinstance(f.type, _NUMBERS) else pa.string() for f in self.fields
        }
        arrays = plain_json(data, column_types)
        if arrays is None:
            raise _Refused
        columns = [_restore(f.type, c, self.rules) for f, c in zip(self.fields, arrays, strict=True)]
        table = pa.Table.from_arrays(columns, schema=arrow_schema(self.fields))
        return JsonRows(table=table, lines=np.arange(table.num_rows, dtype=np.int64))

    def _vectorised(self, raw: bytes, *, textual: bool) -> JsonRows:
        if not self.fields or self.rules.fail_on_missing or not is_utf8(pa.py_buffer(raw)) or _has_nulls(raw):
            raise _Refused
        schema = pa.schema([(f.name, _carrier(f.type, textual)) for f in self.fields])
        lines = _filled_lines(raw)
        if not len(lines):
            return JsonRows(table=arrow_schema(self.fields).empty_table(), lines=lines)
        table = arrow_json.read_json(
            pa.BufferReader(raw),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(raw) + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
            ),
        )
        if table.num_rows != len(lines):
            raise _Refused  # several objects on one line: only the first one counts
        columns = [
            _restore(f.type, column.combine_chunks(), self.rules)
            for f, column in zip(self.fields, table.columns, strict=True)
        ]
        return JsonRows(table=pa.Table.from_arrays(columns, schema=arrow_schema(self.fields)), lines=lines)

    def _careful(self, raw: bytes) -> JsonRows:
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        for number, line in enumerate(raw.split(b"\n")):
            content = line.removesuffix(b"\r")
            if not content:
                continue
            for row in self._rows(content, number):
                rows.append(row)
                lines.append(number)
        columns = [pa.array([r.get(f.name) for r in rows], arrow_type(f.type)) for f in self.fields]
        table = (
            pa.Table.from_arrays(columns, schema=arrow_schema(self.fields)) if columns else _empty(len(rows))
        )
        return JsonRows(table=table, lines=np.asarray(lines, dtype=np.int64))

    def _rows(self, line: bytes, number: int) -> Iterator[dict[str, Any]]:
        excerpt = line[:200].decode("utf-8", "replace").removeprefix("\ufeff")
        try:
            for node in objects(line):
                if not isinstance(node, dict):
                    raise ValueError("Not a JSON object.")
                yield convert_row(self.fields, node, self.rules)
        except FieldError as e:
            reason = f"{e} Value: {_shown(e.value)}"
            raise RecordError(
                f"{self.error_prefix} '{excerpt}'. {reason}", line=number, field=e.field
            ) from None
        except (ValueError, RecursionError) as e:
            if not self.rules.lenient:
                reason = TOO_DEEP if isinstance(e, RecursionError) else str(e)
                raise RecordError(f"{self.error_prefix} '{excerpt}'. {reason}", line=number) from None


def _shown(value: Any) -> str:
    try:
        return compact(value)[:200]
    except RecursionError:
        return "nested too deeply to be shown"


def _empty(rows: int) -> pa.Table:
    return pa.table({"$": pa.nulls(rows)}).select([])


def _reject_constant(text: str) -> Any:
    raise ValueError(f"Non-standard token '{text}'")


_DECODER = json.JSONDecoder(
    parse_float=Number, parse_int=Number, parse_constant=_reject_constant, strict=False
)


def objects(line: bytes) -> list[Any]:
    """The objects of one line, which holds an object or an array of objects; text behind it and a byte order
    mark before it are ignored. ValueError if the line is no JSON, RecursionError if it is nested too
    deeply."""
    node, _ = _DECODER.raw_decode(line.removeprefix(_BOM).decode("utf-8").lstrip())
    return node if isinstance(node, list) else [node]


def _has_nulls(raw: bytes) -> bool:
    """Whether a line may be ``null``: Arrow would read a row of NULLs, but the line is an error."""
    return raw[:100].lstrip()[:4] == b"null" or _NULL_LINE.search(raw) is not None


def _filled_lines(raw: bytes) -> npt.NDArray[np.int64]:
    """Numbers of the lines that are not empty, apart from a carriage return."""
    data = np.frombuffer(raw, dtype=np.uint8)
    ends = np.flatnonzero(data == 10)
    if len(data) and data[-1] != 10:
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - starts
    carriage = (lengths == 1) & (data[np.minimum(starts, len(data) - 1)] == 13) if len(ends) else lengths == 1
    return np.flatnonzero((lengths > 0) & ~carriage).astype(np.int64)


@singledispatch
def _carrier(kind: t.LogicalType, textual: bool) -> pa.DataType:
    """The type that Arrow's reader should return: the native type, or text to parse afterwards."""
    return arrow_type(kind) if isinstance(kind, _NATIVE) and not textual else pa.string()


@_carrier.register
def _(kind: t.ArrayType, textual: bool) -> pa.DataType:
    return pa.list_(_carrier(kind.element, textual))


@_carrier.register
def _(kind: t.RowType, textual: bool) -> pa.DataType:
    return pa.struct([(f.name, _carrier(f.type, textual)) for f in kind.fields])


@_carrier.register(t.MapType)
@_carrier.register(t.MultisetType)
def _(kind: t.LogicalType, textual: bool) -> pa.DataType:
    raise _Refused


@singledispatch
def _restore(kind: t.LogicalType, values: pa.Array, rules: JsonRules) -> pa.Array:
    """Parses columns that were read as text. Refuses the block if a text does not parse."""
    target = arrow_type(kind)
    if values.type == target:
        if pa.types.is_floating(target) and not pc.all(pc.is_finite(values)).as_py():
            raise _Refused
        return values
    converted = convert_text(values, kind, rules.text)
    if converted.bad is not None and not rules.lenient:
        raise _Refused
    return converted.values


@_restore.register
def _(kind: t.ArrayType, values: pa.Array, rules: JsonRules) -> pa.Array:
    elements = _restore(kind.element, values.values, rules)
    return pa.ListArray.from_arrays(values.offsets, elements, type=arrow_type(kind), mask=values.is_null())


@_restore.register
def _(kind: t.RowType, values: pa.Array, rules: JsonRules) -> pa.Array:
    children = [_restore(f.type, values.field(i), rules) for i, f in enumerate(kind.fields)]
    return pa.StructArray.from_arrays(
        children, fields=list(arrow_type(kind)), mask=values.is_null() if values.null_count else None
    )
