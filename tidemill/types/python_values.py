"""Arrow columns as Python values, including texts that are not UTF-8.

Parquet and ORC files, damaged files above all, may contain any bytes as text. Spark and Arrow pass them on.
As in Java, unreadable bytes become U+FFFD when a Python text is made.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """``to_pylist``; columns whose texts cannot all be read so take longer."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        read = partial(_readable, column.type)
        return list(map(read, column.cast(_bytes_for(column.type)).to_pylist()))


def readable(texts: pa.Array) -> pa.Array:
    """``texts`` as valid UTF-8. Cost: a scan of all bytes."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(python_values(texts), texts.type)
    return texts


def _bytes_for(kind: pa.DataType) -> pa.DataType:
    """The type with bytes in place of text."""
    if _is_text(kind):
        return pa.binary()
    if pa.types.is_map(kind):
        return pa.map_(_bytes_for(kind.key_type), _bytes_for(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_bytes_for(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_bytes_for(field.type)) for field in kind])
    return kind


def _readable(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if _is_text(kind):
        return value.decode("utf-8", "replace")
    if pa.types.is_map(kind):
        return [(_readable(kind.key_type, k), _readable(kind.item_type, v)) for k, v in value]
    if pa.types.is_list(kind):
        return [_readable(kind.value_type, v) for v in value]
    if pa.types.is_struct(kind):
        return {field.name: _readable(field.type, value[field.name]) for field in kind}
    return value


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
