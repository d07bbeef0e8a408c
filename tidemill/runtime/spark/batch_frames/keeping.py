"""Frames whose rows are computed once and kept."""

from __future__ import annotations

from pyspark.sql import DataFrame


def kept(frame: DataFrame) -> DataFrame:
    """The rows of ``frame``, computed now, as the beginning of a new plan.

    A checkpoint still has the old plan's guess of its size. Guesses are multiplied join by join, and those of
    joins upon joins grow to numbers that take longer than the query: here nobody guesses.
    """
    rows = frame.localCheckpoint()
    session = rows.sparkSession
    made = session._jsparkSession.internalCreateDataFrame(
        rows._jdf.queryExecution().toRdd(), rows._jdf.schema(), False
    )
    return DataFrame(made, session)
