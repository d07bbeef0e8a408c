"""Joins in batch: Spark's joins over frames whose columns were made unique by position."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.errors import NotSupportedError
from tidemill.plan.nodes import Join, JoinKind
from tidemill.plan.predicates import null_aware_condition
from tidemill.plan.rules.determinism import has_user_call
from tidemill.runtime.spark.expressions import Translator

_SPARK_KIND = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.FULL: "full_outer",
    JoinKind.SEMI: "left_semi",
    JoinKind.ANTI: "left_anti",
}


def join_frames(node: Join, left: DataFrame, right: DataFrame, zone: str) -> DataFrame:
    """The joined frame under the node's field names.

    A null-aware anti join (NOT IN) takes a comparison with NULL for a match.
    """
    _refuse_calls_across(node)
    left_names = tuple(f"l{i}" for i in range(len(node.left.fields)))
    right_names = tuple(f"r{i}" for i in range(len(node.right.fields)))
    wanted = null_aware_condition(node.condition) if node.null_aware else node.condition
    condition = Translator(columns=(*left_names, *right_names), zone=zone).sql(wanted)
    joined = left.toDF(*left_names).join(right.toDF(*right_names), F.expr(condition), _SPARK_KIND[node.kind])
    return joined.toDF(*(f.name for f in node.fields))


def _refuse_calls_across(node: Join) -> None:
    """What is left of user functions in a condition reads both sides."""
    if has_user_call(node.condition):
        raise NotSupportedError(
            f"A user-defined function over both sides of a {node.kind.value} in batch mode is not supported"
        )
