"""Expressions that no SQL text of Spark's means (``org.apache.spark.sql.catalyst.expressions``)."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from tidemill.spark_internals.java import SQL, java_class, jvm, sequence


def interrupted(spark: SparkSession) -> Column:
    """Whether the task was killed: ``Thread.interrupted()`` in the code that Spark generates. It is not
    deterministic, so that Spark asks for each row, where the expression stands."""
    context = spark.sparkContext
    nothing = sequence(context, ())
    call = java_class(context, f"{SQL}.catalyst.expressions.objects.StaticInvoke")(
        jvm(context).java.lang.Class.forName("java.lang.Thread"),
        java_class(context, f"{SQL}.types.DataTypes").BooleanType,
        "interrupted",
        nothing,
        nothing,
        True,  # is NULL where an argument is: there are none
        False,  # is never NULL
        False,  # is deterministic
        java_class(context, "scala.Option").empty(),
    )
    return ClassicColumn(java_class(context, f"{SQL}.classic.ExpressionUtils").column(call))
