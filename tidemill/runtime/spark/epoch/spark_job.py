"""An epoch as a Spark job: one task if it is small and its rows stay in Arrow, otherwise frames."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.runtime.outputs import CollectOutput, Made, SinkOutput, stager_of
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.frames import EpochFrames
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.types.physical import quote

_SINK_COLUMN = "sink"
_TOKEN_COLUMN = "token"


def run_as_spark_job(spark: SparkSession, arrow: ArrowEpochs, facts: EpochFacts, reads: Reads) -> Made:
    """Runs the epoch. ``arrow``: of its job."""
    made = arrow.run(spark.sparkContext, facts, reads) if facts.is_small else None
    if made is not None:
        return made
    with closing(EpochFrames(spark=spark, facts=facts, reads=reads)) as frames:
        return _by_frames(arrow, frames, facts.epoch)


def _by_frames(arrow: ArrowEpochs, frames: EpochFrames, epoch: int) -> Made:
    collected: pa.Table | None = None
    staged: DataFrame | None = None
    for key, output in arrow.outputs.items():
        if isinstance(output, CollectOutput):
            collected = frames.frame(output.node).toArrow()
            continue
        tokens = _staged(frames, output, epoch).select(
            F.lit(key).alias(_SINK_COLUMN), F.col(quote(_TOKEN_COLUMN))
        )
        staged = tokens if staged is None else staged.unionAll(tokens)
    by_sink: dict[str, list[str]] = {
        key: [] for key, output in arrow.outputs.items() if isinstance(output, SinkOutput)
    }
    for row in staged.collect() if staged is not None else ():
        by_sink[row[0]].append(row[1])
    return collected, by_sink


def _staged(frames: EpochFrames, output: SinkOutput, epoch: int) -> DataFrame:
    stager = stager_of(output, epoch)
    if stager is not None:
        return frames.mapped(output.node, stager, f"{_TOKEN_COLUMN} STRING")
    return output.sink.stage(frames.frame(output.node), epoch)
