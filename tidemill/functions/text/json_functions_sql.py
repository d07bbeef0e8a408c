"""A value of a Flink type as JSON text, as JSON_OBJECT, JSON_ARRAY, JSON_STRING and JSON_*AGG write it.

Numbers are those of Java's BigDecimal (1.0E+10, 1E-7); NaN and the infinities are strings; timestamps
are ISO texts, bytes base64; a MAP with text keys and a ROW are objects, their members sorted by key.
"""

from __future__ import annotations

import json
from functools import singledispatch

from tidemill.functions.api import SignatureError
from tidemill.functions.json_document import exact_number
from tidemill.functions.sharing import share
from tidemill.functions.spark_text import bind, each, quoted
from tidemill.functions.text.numbers import NO_EXPONENT
from tidemill.types import logical as t
from tidemill.types.physical import quote


@singledispatch
def json_text(kind: t.LogicalType, _sql: str, /) -> str:
    """Spark SQL text of the JSON text of the second argument, a value of ``kind``; NULL of NULL.

    SignatureError for types that have no JSON form in Flink.
    """
    raise SignatureError(f"Type '{kind}' is not scalar or cannot be converted into JSON.")


@json_text.register(t.BooleanType)
@json_text.register(t.TinyIntType)
@json_text.register(t.SmallIntType)
@json_text.register(t.IntType)
@json_text.register(t.BigIntType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return f"CAST({sql} AS STRING)"


@json_text.register(t.DecimalType)
def _(kind: t.DecimalType, sql: str) -> str:
    text = f"CAST({sql} AS STRING)"
    return exact_number(text) if kind.scale > NO_EXPONENT else text


@json_text.register(t.FloatType)
@json_text.register(t.DoubleType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return bind(
        f"CAST({sql} AS STRING)",
        lambda s: (
            f"CASE WHEN NOT contains({s}, 'E') AND {s} RLIKE '[0-9]' THEN {s} "
            f"WHEN {s} RLIKE '[0-9]' THEN {exact_number(s)} ELSE concat('\"', {s}, '\"') END"
        ),
    )


@json_text.register(t.CharType)
@json_text.register(t.VarCharType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return f"to_json(CAST({sql} AS VARIANT))"


@json_text.register(t.BinaryType)
@json_text.register(t.VarBinaryType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return f"concat('\"', base64({sql}), '\"')"


@json_text.register(t.TimestampType)
def _(_kind: t.TimestampType, sql: str) -> str:
    return f"concat('\"', {_iso(sql)}, '\"')"


@json_text.register(t.LocalZonedTimestampType)
def _(_kind: t.LocalZonedTimestampType, sql: str) -> str:
    utc = f"timestampadd(MICROSECOND, unix_micros({sql}), TIMESTAMP_NTZ '1970-01-01 00:00:00')"
    return f"concat('\"', {_iso(utc)}, 'Z\"')"


def _iso(local: str) -> str:
    """Of a TIMESTAMP_NTZ: as a text it is not taken through the session's zone, as by date_format."""
    return f"replace(CAST({local} AS STRING), ' ', 'T')"


@json_text.register(t.NullType)
def _(_kind: t.NullType, _sql: str) -> str:
    return "CAST(NULL AS STRING)"


@json_text.register(t.ArrayType)
def _(kind: t.ArrayType, sql: str) -> str:
    parts = each(sql, lambda e: or_null(json_text(kind.element, e)))
    return f"concat('[', array_join({parts}, ','), ']')"


@json_text.register(t.MapType)
def _(kind: t.MapType, sql: str) -> str:
    if not isinstance(kind.key, t.CHARACTER_TYPES):
        raise SignatureError(
            f"Type '{kind.key}' is not supported for JSON conversion. "
            "The key type must be a character string."
        )
    members = each(
        f"array_sort({sql}, (l, r) -> CASE WHEN l.key < r.key THEN -1 WHEN l.key > r.key THEN 1 ELSE 0 END)",
        lambda e: _member(f"{e}.key", or_null(json_text(kind.value, f"{e}.value"))),
        role="m",
    )
    return f"concat('{{', array_join({members}, ','), '}}')"


@json_text.register(t.RowType)
def _(kind: t.RowType, sql: str) -> str:
    return share(sql, lambda row: _object(kind, row))


def _object(kind: t.RowType, row: str) -> str:
    fields = (
        f"{quoted(json_key(f.name) + ':')}, {or_null(json_text(f.type, f'({row}).{quote(f.name)}'))}"
        for f in sorted(kind.fields, key=lambda f: utf16_order(f.name))
    )
    separated = ", ',', ".join(fields)
    return f"CASE WHEN {row} IS NOT NULL THEN concat('{{', {separated}, '}}') END"


def _member(key: str, value: str) -> str:
    return f"concat({json_text(t.STRING, key)}, ':', {value})"


def or_null(sql: str) -> str:
    """JSON's null for SQL's NULL."""
    return f"coalesce({sql}, 'null')"


def utf16_order(name: str) -> bytes:
    """The sort key under which Java orders strings."""
    return name.encode("utf-16-be")


def json_key(name: str) -> str:
    """A member's name as JSON text."""
    return json.dumps(name, ensure_ascii=False)
