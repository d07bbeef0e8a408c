"""Bound expressions over columns of hostile values, evaluated by Spark's text and by kernels for Arrow."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.hostile_values import identity
from tests.random_queries.pools import HOSTILE, PLAIN, Type
from tidemill.functions import registry
from tidemill.functions.api import Argument
from tidemill.functions.arrays.api import Inexact
from tidemill.functions.arrays.expressions import Projection, Rows
from tidemill.functions.literals import literal_sql
from tidemill.plan import expressions as x
from tidemill.runtime.array_expressions import projection
from tidemill.runtime.spark.expressions import Translator
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type, quote

_STAMPS = (*HOSTILE[Type.TIMESTAMP], *PLAIN[Type.TIMESTAMP], dt.datetime(2024, 2, 29, 23, 59, 59, 987000))
_FINE = (*_STAMPS, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2100, 3, 1, 0, 0, 0, 1))
_PATHS = (
    "a/b/c/d",
    "/",
    "a//b",
    "https://x.org/é/y?n=1&channel_id=7",
    "channel_id=",
    "&channel_id=a&b",
    "a.b",
)
_NUMBERS = (
    *("0", "-0", "7", "-12", "007", "1.5", "-.5", "5.", "0.1", "1.25", "1.45", "-1.45", "2147483648"),
    *("123456789012345678", "9223372036854775807", "-9223372036854775808", "9223372036854775808"),
    *("0.30000001192092896", "16777217", "340282360000000000000000000000000000000", "99999999999999999999.5"),
    *(" 1 ", "+4", "1e3", "x", "", ".", "-", "--1", "1-2", "0x1F", "1d", "NaN", "\u0663", "1\u00a0"),
)
_DATES = (
    *("2024-02-29", "2023-02-29", "2024-2-3", "1582-10-14", "1582-10-15", "0001-01-01", "9999-12-31", "x"),
    *("2024-01-01 00:00:00", "2024-01-01 24:00:00", "2024-01-01T00:00:00", "2024-01-01 23:59:59.125", ""),
    *("2024-13-01", "2024/01/01", " 2024-01-01", "-024-01-01", "2024-01-01 00:00:00.1", "20240-01-01"),
    *("2024-01-01 00:00:60", "2024-01-01 12:34", "2024-01-01 00:00:00.125999", "2024-01-01 00:00:00Z"),
)
_TEXTS = (*HOSTILE[Type.STRING], *PLAIN[Type.STRING], *_PATHS, "Apple", "APPLE", "  x\t ", "ß", "İ", "-12")

COLUMNS: dict[str, tuple[t.LogicalType, tuple[Any, ...]]] = {
    "y": (t.TinyIntType(), HOSTILE[Type.TINYINT]),
    "s": (t.SmallIntType(), HOSTILE[Type.SMALLINT]),
    "i": (t.INT, (*HOSTILE[Type.INT], *PLAIN[Type.INT], 123)),
    "j": (t.INT, (*HOSTILE[Type.INT], *PLAIN[Type.INT], 7)),
    "b": (t.BIGINT, (*HOSTILE[Type.BIGINT], *PLAIN[Type.BIGINT], 123_000)),
    "c": (t.BIGINT, (*HOSTILE[Type.BIGINT], *PLAIN[Type.BIGINT], -7)),
    "d": (t.DOUBLE, (*HOSTILE[Type.DOUBLE], *PLAIN[Type.DOUBLE], 1e30, -2147483648.5, 9.3e18, 32768.7)),
    "e": (t.DOUBLE, (*HOSTILE[Type.DOUBLE], *PLAIN[Type.DOUBLE], -1e19)),
    "f": (t.FloatType(), (*HOSTILE[Type.FLOAT], 2.0**40)),
    "m": (
        t.DecimalType(precision=8, scale=2),
        (*HOSTILE[Type.DECIMAL], *PLAIN[Type.DECIMAL], Decimal("2.45")),
    ),
    "n": (
        t.DecimalType(precision=12, scale=5),
        tuple(map(Decimal, ("0.00005", "-0.00005", "1234567.89012"))),
    ),
    "w": (t.DecimalType(precision=38, scale=10), HOSTILE[Type.WIDE]),
    "p": (t.BOOLEAN, (True, False)),
    "q": (t.BOOLEAN, (True, False)),
    "t": (t.STRING, _TEXTS),
    "u": (t.STRING, _TEXTS),
    "r": (t.STRING, _NUMBERS),
    "o": (t.STRING, _DATES),
    "v": (t.VarCharType(length=9), ("apple", "B", "", "a%b")),
    "g": (t.TimestampType(precision=3), _STAMPS),
    "h": (t.TimestampType(precision=6), _FINE),
    "k": (t.DATE, (*HOSTILE[Type.DATE], dt.date(2024, 2, 29))),
    "l": (t.LocalZonedTimestampType(precision=3), tuple(s.replace(tzinfo=dt.UTC) for s in _STAMPS)),
}
NAMES = tuple(COLUMNS)
ZONE = "UTC"


def column(name: str) -> x.Expr:
    return x.InputRef(type=COLUMNS[name][0], index=NAMES.index(name))


def constant(value: object) -> x.Expr:
    match value:
        case x.Expr():
            return value
        case bool():
            return x.Literal(type=t.BooleanType(nullable=False), value=value)
        case int():
            kind: t.LogicalType = t.INT if -(2**31) <= value < 2**31 else t.BIGINT
            return x.Literal(type=kind.with_nullable(False), value=value)
        case float():
            return x.Literal(type=t.DOUBLE.with_nullable(False), value=value)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -int(exponent)
            kind = t.DecimalType(precision=max(len(digits), scale), scale=scale, nullable=False)
            return x.Literal(type=kind, value=value)
        case str():
            return x.Literal(type=t.CharType(length=max(len(value), 1), nullable=False), value=value)
        case None:
            return x.Literal(type=t.NullType(), value=None)
    raise TypeError(repr(value))


def call(name: str, *args: object, **options: str) -> x.Expr:
    """``name(args)``, resolved and cast as the binder does it. The name of a column means the column."""
    function = registry.scalar(name)
    assert function is not None, name
    given = tuple(column(a) if isinstance(a, str) and a in COLUMNS else constant(a) for a in args)
    arguments = tuple(
        Argument(g.type, g.value, True) if isinstance(g, x.Literal) else Argument(g.type) for g in given
    )
    resolved = function.resolve(arguments, options)
    cast_args = tuple(
        g if g.type.with_nullable(True) == k.with_nullable(True) else cast(g, k)
        for g, k in zip(given, resolved.arg_types, strict=True)
    )
    return x.Call(type=resolved.result, function=name, args=cast_args, options=tuple(options.items()))


def cast(operand: object, kind: t.LogicalType, *, safe: bool = False) -> x.Expr:
    """CAST; ``safe``: TRY_CAST."""
    given = column(operand) if isinstance(operand, str) else operand
    assert isinstance(given, x.Expr)
    return x.Cast(type=kind.with_nullable(safe or given.type.nullable), operand=given, safe=safe)


def rows(count: int, seed: int) -> list[tuple[Any, ...]]:
    """Random rows: every seventh value is NULL."""
    chooser = random.Random(seed)
    return [
        tuple(None if chooser.random() < 1 / 7 else chooser.choice(values) for _, values in COLUMNS.values())
        for _ in range(count)
    ]


def translated(expr: x.Expr) -> Projection | None:
    return projection(None, (expr,), NAMES, ZONE)


def differences(spark: SparkSession, given: Sequence[x.Expr], values: list[tuple[Any, ...]]) -> list[str]:
    """Where Spark's text and the kernels give different values, in one query."""
    wanted = _by_spark(spark, given, values)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in values], arrow_type(k)) for i, (k, _) in enumerate(COLUMNS.values())],
        names=list(NAMES),
    )
    return [
        f"{text(expr)} of {values[row]}: {found!r}, not {right!r}"
        for place, expr in enumerate(given)
        for row, found, right in _compared(expr, batch, wanted[place])
    ]


def text(expr: x.Expr) -> str:
    return Translator(columns=NAMES, zone=ZONE).sql(expr)


def _by_spark(spark: SparkSession, given: Sequence[x.Expr], values: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Over a local relation Spark evaluates without compiling anything."""
    kinds = [kind for kind, _ in COLUMNS.values()]
    listed = ", ".join(
        f"({', '.join(literal_sql(v, k) for v, k in zip(row, kinds, strict=True))}, {number})"
        for number, row in enumerate(values)
    )
    names = ", ".join(map(quote, (*NAMES, "$row")))
    texts = ", ".join(f"{text(e)} AS c{i}" for i, e in enumerate(given))
    table = spark.sql(f"SELECT `$row`, {texts} FROM VALUES {listed} AS r({names})").toArrow()
    table = table.sort_by("$row")
    return [_plain(c.combine_chunks(), e) for c, e in zip(table.columns[1:], given, strict=True)]


def _plain(array: pa.Array, expr: x.Expr) -> list[Any]:
    """Python values; times as numbers, as they may leave the years that Python knows."""
    kind = arrow_type(expr.type)
    typed = array.cast(kind)
    values: list[Any] = (typed.cast(pa.int64()) if pa.types.is_timestamp(kind) else typed).to_pylist()
    return values


def _compared(expr: x.Expr, batch: pa.RecordBatch, wanted: list[Any]) -> list[tuple[int, Any, Any]]:
    """As one batch, without its first rows, and, of what is not exact, row by row."""
    pieces = [(0, batch), (3, batch.slice(3))]
    if _values(expr, batch) is None:
        pieces += [(row, batch.slice(row, 1)) for row in range(batch.num_rows)]
    found = [(start, values) for start, piece in pieces if (values := _values(expr, piece)) is not None]
    assert found, f"{text(expr)} is exact for no row"
    return [
        (start + place, value, wanted[start + place])
        for start, values in found
        for place, value in enumerate(values)
        if identity(value) != identity(wanted[start + place])
    ]


def _values(expr: x.Expr, batch: pa.RecordBatch) -> list[Any] | None:
    made = translated(expr)
    assert made is not None, f"{text(expr)} has no kernels"
    given = Rows(batch.num_rows, dict(zip(batch.schema.names, batch.columns, strict=True)))
    try:
        return _plain(made.arrays(made.filtered(given))[0], expr)
    except Inexact:
        return None
