"""Columns of values as JSON text, as JSON_ARRAYAGG and JSON_OBJECTAGG write them.

Numbers print as Flink's do (1.0E+20), times in ISO form, bytes in Base64, maps as objects.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.functions.text.format_columns import by_distinct
from tidemill.functions.text.times import shortest, timestamp


def json_values(column: pa.Array, raw: bool) -> pa.Array:
    """Each value as JSON text, NULL as ``null``. Every distinct value is written once."""
    kind = column.type
    if raw:
        return by_distinct(column.cast(pa.string()), _sorted_json).fill_null("null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    if pa.types.is_nested(kind):
        write = _writer(kind)
        return pa.array([write(v) for v in column.to_pylist()], pa.string())
    return by_distinct(column, _text).fill_null("null")


def _text(value: Any) -> str:
    return _WRITERS.get(type(value), quoted)(value)


def quoted(value: Any) -> str:
    """Text as a JSON string."""
    return encode_basestring(str(value))


def _number(value: Decimal | float) -> str:
    """Java's BigDecimal text, as Python's Decimal prints it: 1.0E+20, 1E-7."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return f'"{value}"'.replace("nan", "NaN").replace("inf", "Infinity")
        if value == 0 or 1e-3 <= abs(value) < 1e7:
            return repr(value)
        digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
        return str(Decimal(f"{digits if '.' in digits else digits + '.0'}E{exponent}"))
    return str(value)


def _moment(value: datetime.datetime) -> str:
    return f'"{shortest(timestamp(value, 6, "T"))}{"Z" if value.tzinfo else ""}"'


def _writer(kind: pa.DataType) -> Callable[[Any], str]:
    """The function that writes a value of a nested type. A map is an array of (key, value) entries."""
    if pa.types.is_struct(kind):
        members = {f.name: _writer(f.type) for f in kind}
        return lambda row: "null" if row is None else _object({k: w(row[k]) for k, w in members.items()})
    if not pa.types.is_list(kind):
        return _text
    inner = kind.value_type
    if pa.types.is_struct(inner) and [f.name for f in inner] == ["key", "value"]:
        write = _writer(inner.field(1).type)
        return lambda entries: (
            "null" if entries is None else _object({e["key"]: write(e["value"]) for e in entries})
        )
    element = _writer(inner)
    return lambda values: "null" if values is None else "[" + ",".join(map(element, values)) + "]"


def _object(members: dict[Any, str]) -> str:
    """An object with its members sorted by key, as Flink's mapper sorts them at every level."""
    return "{" + ",".join(f"{quoted(key)}:{text}" for key, text in sorted(members.items())) + "}"


class _Number(str):
    """The text of a JSON number."""


def _sorted_json(text: str) -> str:
    """JSON text with its members sorted by key; numbers stay as they are."""
    return _rewritten(json.loads(text, parse_float=_Number, parse_int=_Number))


def _rewritten(value: Any) -> str:
    if isinstance(value, dict):
        return _object({key: _rewritten(member) for key, member in value.items()})
    if isinstance(value, list):
        return "[" + ",".join(map(_rewritten, value)) + "]"
    return value if isinstance(value, _Number) else _text(value)


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda v: "null",
    bool: lambda v: "true" if v else "false",
    int: str,
    float: _number,
    Decimal: _number,
    bytes: lambda v: f'"{base64.b64encode(v).decode()}"',
    datetime.datetime: _moment,
}
