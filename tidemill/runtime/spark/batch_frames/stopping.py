"""Loops that end when their task is killed.

A task looks whether it was killed when it takes its next batch of input. Where each row meets all rows of
another side, a batch is minutes of work: there the task looks with each row that it takes. Spark interrupts
the thread of a task that it kills, and a task that has seen that fails, which Spark takes for its end:
nothing is left out of an answer. Cost: some 50 ns a row.
"""

from __future__ import annotations

from tidemill.physical.batch import nodes as b
from tidemill.runtime.spark.batch_frames.relation import Relation
from tidemill.types.physical import quote

_GOES_ON = (
    "CASE WHEN reflect('java.lang.Thread', 'interrupted') = 'true' THEN raise_error('the task was killed') "
    "ELSE TRUE END"
)


def stoppable(rows: Relation) -> Relation:
    """The same rows, each of which a task takes only while it was not killed."""
    return rows.select(list(map(quote, rows.columns)), rows.columns, f"WHERE {_GOES_ON}")


def is_single(node: b.BatchNode) -> bool:
    """Whether it has one row at most."""
    while isinstance(node, b.Calc):
        node = node.source
    if isinstance(node, b.Values):
        return len(node.rows) <= 1
    return (isinstance(node, b.Aggregate) and not node.keys) or (
        isinstance(node, b.Limit) and node.fetch == 1
    )
