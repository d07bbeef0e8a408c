"""Typed calls for tests: resolved as the binder does it, evaluated in one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

from tidemill.functions import registry
from tidemill.functions.api import Argument, SparkCall
from tidemill.functions.casts import cast_sql
from tidemill.functions.literals import literal_sql
from tidemill.functions.render import render_sql
from tidemill.types import logical as t

ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Node:
    """An expression: its Flink type, its Spark SQL, its value if it is a constant."""

    type: t.LogicalType
    sql: str
    literal: object = None
    is_literal: bool = False

    def cast(self, target: t.LogicalType, *, safe: bool = False) -> Node:
        kind = target.with_nullable(self.type.nullable or safe)
        return Node(kind, cast_sql(self.sql, self.type, kind, safe=safe, zone=ZONE))


def constant(value: object, kind: t.LogicalType) -> Node:
    kind = kind.with_nullable(value is None)
    return Node(kind, literal_sql(value, kind), value, True)


def column(name: str, kind: t.LogicalType) -> Node:
    return Node(kind, name)


def of(value: object) -> Node:
    """A literal with the type that SQL gives it."""
    match value:
        case Node():
            return value
        case None:
            return constant(None, t.NullType())
        case bool():
            return constant(value, t.BOOLEAN)
        case int():
            return constant(value, t.INT if -(2**31) <= value < 2**31 else t.BIGINT)
        case float():
            return constant(value, t.DOUBLE)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = -int(exponent)
            return constant(value, t.DecimalType(precision=max(len(digits), scale), scale=scale))
        case str():
            return constant(value, t.CharType(length=len(value)))
        case datetime():
            return constant(value, t.TimestampType(precision=6 if value.microsecond % 1000 else 3))
        case date():
            return constant(value, t.DATE)
    raise TypeError(repr(value))


def call(name: str, *args: object, zone: str = ZONE, **options: str) -> Node:
    """``name(args)``; arguments are nodes or Python values. SignatureError as the function gives it."""
    function = registry.scalar(name)
    assert function is not None, name
    nodes = [of(a) for a in args]
    arguments = tuple(Argument(n.type, n.literal, n.is_literal) for n in nodes)
    resolved = function.resolve(arguments, options)
    texts = tuple(
        cast_sql(n.sql, n.type, k, safe=False, zone=zone)
        for n, k in zip(nodes, resolved.arg_types, strict=True)
    )
    given = SparkCall(
        args=texts,
        arg_types=resolved.arg_types,
        literals=tuple(n.literal for n in nodes),
        result=resolved.result,
        options=options,
        zone=zone,
    )
    return Node(resolved.result, function.spark(given))


def shown(source: SparkSession | DataFrame, nodes: Sequence[Node]) -> list[object]:
    """The values of ``nodes`` as results show them, from one row."""
    frame = source.range(1) if isinstance(source, SparkSession) else source
    texts = [f"{render_sql(n.sql, n.type, ZONE)} AS c{i}" for i, n in enumerate(nodes)]
    return list(frame.selectExpr(*texts).collect()[0])


def kinds(nodes: Sequence[Node]) -> list[str]:
    return [str(n.type) for n in nodes]
