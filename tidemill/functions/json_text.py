"""A value of a Flink type as JSON text, as JSON_OBJECT, JSON_ARRAY, JSON_STRING and JSON_*AGG write it."""

from __future__ import annotations

from functools import singledispatch

from tidemill.functions.api import SignatureError
from tidemill.functions.spark_text import each, quoted
from tidemill.types import logical as t


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
@json_text.register(t.DecimalType)
@json_text.register(t.FloatType)
@json_text.register(t.DoubleType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return f"CAST({sql} AS STRING)"


@json_text.register(t.CharType)
@json_text.register(t.VarCharType)
def _(_kind: t.LogicalType, sql: str) -> str:
    return f"to_json(CAST({sql} AS VARIANT))"


@json_text.register(t.NullType)
def _(_kind: t.NullType, _sql: str) -> str:
    return "CAST(NULL AS STRING)"


@json_text.register(t.ArrayType)
def _(kind: t.ArrayType, sql: str) -> str:
    parts = each(sql, lambda e: or_null(json_text(kind.element, e)))
    return f"concat('[', array_join({parts}, ','), ']')"


@json_text.register(t.RowType)
def _(kind: t.RowType, sql: str) -> str:
    fields = [
        f"{quoted(_key(f.name) + ':')}, {or_null(json_text(f.type, f'({sql}).`{f.name}`'))}"
        for f in kind.fields
    ]
    separated = ", ',', ".join(fields)
    return f"CASE WHEN {sql} IS NOT NULL THEN concat('{{', {separated}, '}}') END"


def or_null(sql: str) -> str:
    """JSON's null for SQL's NULL."""
    return f"coalesce({sql}, 'null')"


def _key(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
