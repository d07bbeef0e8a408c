"""The destinations of an epoch's rows: sinks, which stage the rows, or the reader of a SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidemill.connectors.api import BatchMap, Sink
from tidemill.runtime import graph as g


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


def stager_of(output: SinkOutput, epoch: int) -> BatchMap | None:
    """Stages a task's rows where they are made; None if the sink wants them elsewhere."""
    return output.sink.stager(epoch)
