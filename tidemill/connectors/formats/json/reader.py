"""Reads lines of JSON objects into Arrow columns of given Flink types.

Four tiers, each exact or refusing: the compiled core, for flat columns; Arrow's reader with native
types; Arrow's reader with every scalar as text (captures that quote all values); Python, object by
object, which is the authority and the only one that reports or skips errors. Cost per row: 0.1 µs,
0.3 µs, 0.6 µs, 10 µs or so.
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
    """``what`` starts the message about a record that is no JSON."""

    fields: tuple[t.Field, ...]
    rules: JsonRules
    what: str = "Failed to deserialize JSON"

    def read(self, data: pa.Buffer) -> JsonRows:
        """RecordError on the first record that does not fit, unless the rules are lenient."""
        with suppress(*_REFUSALS):
            return self._plain(data.slice(len(_BOM)) if bytes(data[: len(_BOM)]) == _BOM else data)
        raw = data.to_pybytes().removeprefix(_BOM)
        for textual in (False, True):
            with suppress(*_REFUSALS):
                return self._vectorised(raw, textual=textual)
        return self._careful(raw)

    def _plain(self, data: pa.Buffer) -> JsonRows:
        """Every line is an object, so that rows and lines have the same numbers."""
        if self.rules.fail_on_missing or any(isinstance(f.type, _NESTED) for f in self.fields):
            raise _Refused
        asked = {
            f.name: arrow_type(f.type) if isinstance(f.type, _NUMBERS) else pa.string() for f in self.fields
        }
        found = plain_json(data, asked)
        if found is None:
            raise _Refused
        columns = [_restore(f.type, c, self.rules) for f, c in zip(self.fields, found, strict=True)]
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
        shown = line[:200].decode("utf-8", "replace").removeprefix("\ufeff")
        try:
            for node in objects(line):
                if not isinstance(node, dict):
                    raise ValueError("Not a JSON object.")
                yield convert_row(self.fields, node, self.rules)
        except FieldError as e:
            reason = f"{e} Value: {_shown(e.value)}"
            raise RecordError(f"{self.what} '{shown}'. {reason}", line=number, field=e.field) from None
        except (ValueError, RecursionError) as e:
            if not self.rules.lenient:
                reason = TOO_DEEP if isinstance(e, RecursionError) else str(e)
                raise RecordError(f"{self.what} '{shown}'. {reason}", line=number) from None


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
    """The objects of one line: one object, or an array of them; what follows it does not count, a byte
    order mark before it neither. ValueError where it is no JSON, RecursionError where it is too deep."""
    node, _ = _DECODER.raw_decode(line.removeprefix(_BOM).decode("utf-8").lstrip())
    return node if isinstance(node, list) else [node]


def _has_nulls(raw: bytes) -> bool:
    """Arrow takes a line ``null`` for a row of NULLs; it is an error."""
    return raw[:100].lstrip()[:4] == b"null" or _NULL_LINE.search(raw) is not None


def _filled_lines(raw: bytes) -> npt.NDArray[np.int64]:
    """Numbers of the lines that are not empty; a line of blanks alone is refused (it is an error)."""
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
    """What Arrow's reader is asked for: the native type, or text to be converted afterwards."""
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
    """Converts what was read as text; refuses when a text does not fit (the careful tier reports)."""
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
