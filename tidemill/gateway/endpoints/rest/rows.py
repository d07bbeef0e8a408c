"""Rows as JSON text, in Flink's two row formats: JSON has values by their types, PLAIN_TEXT has each as
CAST(x AS STRING) gives it.

A column at a time: whole numbers, truth values and text that has nothing to escape are written by Arrow,
others value by value, as are all of a few rows, for which to begin costs more than to write.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.functions.text.cast import cast
from tidemill.functions.text.endpoint_json import endpoint_json, quoted
from tidemill.functions.text.style import Write
from tidemill.session.rows.decoder import column_values
from tidemill.types import logical as t

FORMATS = ("JSON", "PLAIN_TEXT")
_NULL = "null"
_ESCAPED = r'[\x00-\x1f"\\]'
_BEGIN = {kind: f'{{"kind":"{kind.name}","fields":[' for kind in RowKind}
_END = "]}"
_FEW = 32


def rows_json(table: pa.Table, fields: tuple[t.Field, ...], row_format: str, zone: dt.tzinfo) -> str:
    """The ``data`` of a page: an array of objects with ``kind`` and ``fields``."""
    plain = row_format != "JSON"
    if table.num_rows <= _FEW:
        return _few(table, fields, zone, plain=plain)
    parts: list[pa.ChunkedArray | str] = [_kinds(table)]
    for place, field in enumerate(fields):
        parts += [","] * (place > 0)
        parts.append(_texts(table, place, field.type, zone, plain=plain))
    rows = pc.binary_join_element_wise(*parts, _END, "")
    return f"[{','.join(rows.to_pylist())}]"


def _few(table: pa.Table, fields: tuple[t.Field, ...], zone: dt.tzinfo, *, plain: bool) -> str:
    columns = [_written(table, place, field.type, zone, plain=plain) for place, field in enumerate(fields)]
    values = zip(*columns, strict=True) if columns else [()] * table.num_rows
    rows = (f"{begin}{','.join(row)}{_END}" for begin, row in zip(_begins(table), values, strict=True))
    return f"[{','.join(rows)}]"


def _kinds(table: pa.Table) -> pa.ChunkedArray:
    if KIND_COLUMN not in table.column_names:
        return pa.chunked_array([pa.repeat(_BEGIN[RowKind.INSERT], table.num_rows)])
    return pa.chunked_array([pa.array(_begins(table), pa.string())])


def _begins(table: pa.Table) -> list[str]:
    """How each row begins."""
    if KIND_COLUMN not in table.column_names:
        return [_BEGIN[RowKind.INSERT]] * table.num_rows
    return [_BEGIN[RowKind(kind)] for kind in table.column(KIND_COLUMN).to_pylist()]


def _texts(
    table: pa.Table, place: int, kind: t.LogicalType, zone: dt.tzinfo, *, plain: bool
) -> pa.ChunkedArray:
    """The values of a column as JSON."""
    column = table.column(place)
    if isinstance(kind, t.INTEGER_TYPES) or (isinstance(kind, t.BooleanType) and not plain):
        return _or_null(column.cast(pa.string()), quote=plain)
    if isinstance(kind, t.CHARACTER_TYPES) and not pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        return _or_null(column, quote=True)
    return pa.chunked_array([pa.array(_written(table, place, kind, zone, plain=plain), pa.string())])


def _written(table: pa.Table, place: int, kind: t.LogicalType, zone: dt.tzinfo, *, plain: bool) -> list[str]:
    """Value by value."""
    encode = _plain(kind, zone) if plain else endpoint_json(kind)
    return [_NULL if value is None else encode(value) for value in column_values(table, place)]


def _or_null(texts: pa.ChunkedArray, *, quote: bool) -> pa.ChunkedArray:
    written = pc.binary_join_element_wise('"', texts, '"', "") if quote else texts
    return written.fill_null(_NULL) if texts.null_count else written


def _plain(kind: t.LogicalType, zone: dt.tzinfo) -> Write:
    write = cast(kind, zone)
    return lambda value: quoted(write(value))
