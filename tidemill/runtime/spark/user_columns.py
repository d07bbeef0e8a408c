"""User functions as Spark columns: one Arrow UDF per call, run in Spark's Python workers.

A call gets whole batches of its arguments; what it raises comes back as an ExecutionError that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.plan.expressions import Expr, UserCall
from tidemill.runtime.graph import Expression, UserColumn
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.physical import quote, spark_type
from tidemill.user_functions.calls import BoundScalar, BoundTable

ARROW_UDF: Any = F.arrow_udf  # type: ignore[attr-defined]  # missing in PySpark's stubs
Bound = BoundScalar | BoundTable


def expression(expr: Expr, translator: Translator) -> Expression:
    """The SQL text of ``expr``, or the call that it is."""
    if isinstance(expr, UserCall):
        return UserColumn(expr.function, tuple(map(translator.sql, expr.args)))
    return translator.sql(expr)


def selected(
    frame: DataFrame, expressions: Sequence[Expression], names: Sequence[str], hidden: Sequence[str]
) -> DataFrame:
    """The expressions under ``names``, then the columns ``hidden`` of ``frame`` as they are."""
    texts = [f"{e} AS {quote(n)}" for e, n in zip(expressions, names, strict=True) if isinstance(e, str)]
    if len(texts) == len(expressions):
        return frame.selectExpr(*texts, *map(quote, hidden))
    columns = [_column(e).alias(n) for e, n in zip(expressions, names, strict=True)]
    return frame.select(*columns, *map(F.col, map(quote, hidden)))


def _column(given: Expression) -> Column:
    """The Spark column of an expression; of a table function's call a list of rows."""
    if isinstance(given, str):
        return F.expr(given)
    # Spark has no Arrow functions without arguments: a constant tells how many rows there are.
    args = [F.expr(text) for text in given.args] or [F.lit(0)]
    made: Any = ARROW_UDF(_called(given.function), _returns(given.function))
    # The plan says where a call is computed: a non-deterministic one Spark neither moves nor repeats.
    called: Column = made.asNondeterministic()(*args)
    return called


def _returns(function: Bound) -> str:
    if isinstance(function, BoundTable):
        return f"ARRAY<{spark_type(function.columns)}>"
    return spark_type(function.result)


def _called(function: Bound) -> Callable[..., pa.Array]:
    """``function`` as PySpark wants it: a plain function from arrays to an array, by its annotations."""

    def call(*columns: pa.Array) -> pa.Array:
        rows = len(columns[0])
        given = tuple(_whole(c) for c in columns[: len(function.arg_types)])
        try:
            return function(given, rows)
        except TidemillError as e:
            raise WorkerError(e) from None

    return call


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
