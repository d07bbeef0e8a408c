"""The destinations of an epoch's rows: sinks, which stage the rows, or the reader of a SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.connectors.api import BatchMap, Sink
from tidemill.runtime import graph as g
from tidemill.runtime.spark.epoch.frames import EpochFrames
from tidemill.types.physical import quote

_SINK_COLUMN = "sink"
_TOKEN_COLUMN = "token"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOutput:
    """A sink and the exec node that feeds it."""

    node: g.ExecNode
    sink: Sink


class Collector(Protocol):
    """Takes the rows of a committed epoch of a SELECT: the columns, then ``$kind`` if there are changes."""

    def __call__(self, epoch: int, rows: pa.Table) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOutput:
    """``schema``: of its rows."""

    node: g.ExecNode
    schema: pa.Schema
    collector: Collector


Output = SinkOutput | CollectOutput
Made = tuple[pa.Table | None, dict[str, list[str]]]
"""What an epoch makes: the rows to collect, if any, and the tokens of each sink's staged output."""


def run_outputs(outputs: Mapping[str, Output], frames: EpochFrames, epoch: int) -> Made:
    """Runs the epoch."""
    collected: pa.Table | None = None
    staged: DataFrame | None = None
    for key, output in outputs.items():
        if isinstance(output, CollectOutput):
            collected = frames.frame(output.node).toArrow()
            continue
        tokens = _staged(frames, output, epoch).select(
            F.lit(key).alias(_SINK_COLUMN), F.col(quote(_TOKEN_COLUMN))
        )
        staged = tokens if staged is None else staged.unionAll(tokens)
    by_sink: dict[str, list[str]] = {
        key: [] for key, output in outputs.items() if isinstance(output, SinkOutput)
    }
    for row in staged.collect() if staged is not None else ():
        by_sink[row[0]].append(row[1])
    return collected, by_sink


def _staged(frames: EpochFrames, output: SinkOutput, epoch: int) -> DataFrame:
    stager = stager_of(output, epoch)
    if stager is not None:
        return frames.mapped(output.node, stager, f"{_TOKEN_COLUMN} STRING")
    return output.sink.stage(frames.frame(output.node), epoch)


def stager_of(output: SinkOutput, epoch: int) -> BatchMap | None:
    """Stages a task's rows where they are made; None if the sink wants them elsewhere."""
    return output.sink.stager(epoch)
