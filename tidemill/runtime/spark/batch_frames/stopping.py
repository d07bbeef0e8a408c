"""Loops that end when their task is killed.

A task checks whether it was killed when it takes its next batch of input. If each row meets all rows of
another side, or all elements of a collection and then all of the next, a batch is minutes of work. There the
task checks at each row. Spark interrupts the thread of a task that it kills. If the task sees that, it fails,
and Spark takes the failure for the task's end, so no answer lacks rows. Cost: a call of
``Thread.interrupted()`` in the code that Spark generates, a nanosecond or two per row. SQL's ``reflect``
makes the same call, but Spark generates no code for a step with ``reflect``, and copies its rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.runtime.spark.batch_frames.relation import Relation
from tidemill.spark_internals.expressions import interrupted
from tidemill.spark_internals.versions import STOPPABLE_ROWS, is_on


def stoppable(rows: Relation) -> Relation:
    """The same rows, each of which a task takes only while it was not killed."""
    if not is_on(STOPPABLE_ROWS):
        return rows
    frame = rows.frame()
    killed = F.raise_error(F.lit("the task was killed")).cast("boolean")
    kept: DataFrame = frame.filter(F.when(interrupted(rows.views.spark), killed).otherwise(F.lit(True)))
    return rows.views.of(kept, rows.columns)


def makes_many(node: p.PhysicalNode) -> bool:
    """Whether its rows are elements of collections: very many may come of one batch of input."""
    while isinstance(node, p.Calc):
        node = node.input
    return isinstance(node, b.Unnest)


def is_single(node: p.PhysicalNode) -> bool:
    """Whether it has one row at most."""
    while isinstance(node, p.Calc):
        node = node.input
    if isinstance(node, p.Values):
        return len(node.rows) <= 1
    return (isinstance(node, b.Aggregate) and not node.keys) or (
        isinstance(node, p.SortLimit) and node.fetch == 1
    )
