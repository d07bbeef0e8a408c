"""Evaluates calls of registered functions in Spark: all of a table's cases in one query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.sql import SparkSession

from tidemill.functions import registry
from tidemill.functions.api import Argument, Resolved, SparkAggregateCall, SparkCall
from tidemill.functions.literals import literal_sql
from tidemill.types import logical as t


@dataclass(frozen=True, slots=True)
class Typed:
    """An argument as Spark SQL text of a type; never a literal to the function."""

    sql: str
    type: t.LogicalType


@dataclass(frozen=True, slots=True)
class Case:
    """``args``: Python values (literals) or Typed; ``options`` as the binder gives them."""

    name: str
    args: tuple[object, ...]
    expected: object
    options: dict[str, str] = field(default_factory=dict)


_LITERALS: dict[type, t.LogicalType] = {
    bool: t.BooleanType(nullable=False),
    int: t.IntType(nullable=False),
    float: t.DoubleType(nullable=False),
    bytes: t.VarBinaryType(nullable=False),
    type(None): t.STRING,
}


def type_of(value: object) -> t.LogicalType:
    if isinstance(value, Typed):
        return value.type
    if isinstance(value, str):
        return t.CharType(length=max(len(value), 1), nullable=False)
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        return t.DecimalType(precision=len(digits), scale=-int(exponent), nullable=False)
    return _LITERALS[type(value)]


def resolve(name: str, args: tuple[object, ...], options: dict[str, str] | None = None) -> Resolved:
    """The types of a call; SignatureError where it is none."""
    function = registry.scalar(name)
    assert function is not None, name
    given = tuple(
        Argument(type_of(a), None if isinstance(a, Typed) else a, not isinstance(a, Typed)) for a in args
    )
    return function.resolve(given, options or {})


def spark_text(case: Case, *, literal: bool) -> str:
    """``literal`` False hides the arguments' values from the translation, as if they were columns."""
    function = registry.scalar(case.name)
    assert function is not None, case.name
    resolved = resolve(case.name, case.args, case.options)
    return function.spark(
        SparkCall(
            args=tuple(a.sql if isinstance(a, Typed) else literal_sql(a, type_of(a)) for a in case.args),
            arg_types=resolved.arg_types,
            literals=tuple(a if literal and not isinstance(a, Typed) else None for a in case.args),
            result=resolved.result,
            options=case.options,
            zone="UTC",
        )
    )


def check(spark: SparkSession, cases: Sequence[Case], *, literal: bool = True) -> None:
    """Every case has its expected value; all differences are shown."""
    texts = [f"{spark_text(case, literal=literal)} AS c{i}" for i, case in enumerate(cases)]
    # Over a local relation Spark evaluates without compiling anything, which is much faster here.
    query = f"SELECT {', '.join(texts)} FROM VALUES (1) AS one(x)"
    values = [_plain(v) for v in spark.sql(query).collect()[0]]
    wrong = [(c, v) for c, v in zip(cases, values, strict=True) if v != c.expected]
    assert not wrong, "\n".join(f"{c.name}{c.args} {c.options}: {v!r}, not {c.expected!r}" for c, v in wrong)


def _plain(value: object) -> object:
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return list(map(_plain, value)) if isinstance(value, list) else value


def aggregate(
    spark: SparkSession,
    name: str,
    types: tuple[t.LogicalType, ...],
    rows: str,
    options: dict[str, str] | None = None,
    *,
    distinct: bool = False,
    where: str = "",
    sequence: str = "",
) -> tuple[str, object]:
    """Result type and value over ``rows``, a VALUES list whose columns are a, b, ... and last g."""
    function = registry.aggregate(name)
    assert function is not None, name
    assert function.spark is not None, name
    columns = tuple("abcdef"[: len(types)])
    resolved = function.resolve(tuple(map(Argument, types)), options or {})
    text = function.spark(
        SparkAggregateCall(
            args=columns,
            arg_types=resolved.arg_types,
            literals=(None,) * len(types),
            result=resolved.result,
            options=options or {},
            zone="UTC",
            distinct=distinct,
            where=where,
            sequence=sequence,
        )
    )
    query = f"SELECT {text} FROM VALUES {rows} AS r({', '.join([*columns, 'g'])})"
    return str(resolved.result), _plain(spark.sql(query).collect()[0][0])
