"""Frames whose rows are computed once and kept."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemill.spark_internals.frames import of_unknown_size


def kept(frame: DataFrame) -> DataFrame:
    """The rows of ``frame``, computed now, as the beginning of a new plan.

    A checkpoint still has the old plan's guess of its size. Guesses are multiplied join by join, and those of
    joins upon joins grow to numbers that take longer than the query: here nobody guesses.
    """
    return of_unknown_size(frame.localCheckpoint())
