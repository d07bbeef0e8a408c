"""UNION ALL of an epoch's frames."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.runtime import graph as g
from tidemill.types.physical import quote


def aligned(branch: g.ExecNode, union: g.Merge) -> list[str]:
    """The branch's columns under the union's names, hidden ones filled in where it has none."""
    columns = [f"{quote(b)} AS {quote(u)}" for b, u in zip(branch.columns, union.columns, strict=True)]
    if union.has_kind:
        columns.append(
            quote(KIND_COLUMN) if branch.has_kind else f"CAST(0 AS TINYINT) AS {quote(KIND_COLUMN)}"
        )
    if union.sequenced:
        columns.append(quote(SEQUENCE_COLUMN))
    if union.timed:
        columns.append(quote(WATERMARK_COLUMN))
    return columns


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of ``frames``, by position and in their order.

    Spark looks at a union's whole list of inputs with each that is added: halves are put together, so that a
    thousand inputs cost a thousand times their logarithm, not their square.
    """
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return united(frames[:middle]).unionAll(united(frames[middle:]))
