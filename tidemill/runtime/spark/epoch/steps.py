"""An epoch's work as data: which maps over batches follow each other in one worker, and where rows cross.

    GROUP BY of a source: ReadRows(through=Writers) -> Exchanged(task=KernelTask(then=a sink's stager))

A step is a value that says how rows are made. Its runner decides how batches get from one step to the next:
``frames`` makes a lazy Spark frame of a step, ``runtime.spark.resident`` runs it in workers that stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.connectors.api import BatchMap
from tidemill.runtime import graph as g


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReadRows:
    """``through`` over the batches of each read task of the epoch's range of a source."""

    source: str
    through: BatchMap
    schema: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeRows:
    """The rows of a node that no step makes: its frame. ``named``: under the names of the node, else under
    ``c0..``."""

    node: g.ExecNode
    named: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Mapped:
    """``through`` over the batches of each task of ``below``. ``schema``: of what it gives, as Spark DDL."""

    below: Step
    through: BatchMap
    schema: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchanged:
    """``task``, once per partition, over the exchange's blocks for it (see ``runtime.spark.exchange``).
    ``ticks``: each partition runs, even one without blocks."""

    blocks: tuple[Step, ...]
    partitions: int
    ticks: bool
    task: BatchMap
    schema: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """The blocks for one ``reader`` of a node that runs once, as ``whole`` says, for several (see
    ``runtime.spark.spread``). ``key``: the same for all of them."""

    key: int
    whole: Step
    reader: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class United:
    """The rows of all ``branches``, in their order. Tasks are counted over all of them."""

    branches: tuple[Step, ...]


Step = ReadRows | NodeRows | Mapped | Exchanged | Part | United
