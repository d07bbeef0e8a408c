"""Epochs without frames, as rows stay in Arrow: their steps, and a small epoch as one Spark task.

A small epoch takes some milliseconds. As one task it needs no exchange between processes and no plan.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark import SparkContext

from tidemill.connectors.api import BatchMap
from tidemill.deep_calls import with_room
from tidemill.errors import InternalError
from tidemill.operators.api import AGAIN, HOT
from tidemill.runtime import graph as g
from tidemill.runtime.outputs import CollectOutput, Made, Output, SinkOutput, stager_of
from tidemill.runtime.spark.epoch.arrow_steps import ArrowSteps
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.fitness import needs_frames, rows_of_frames
from tidemill.runtime.spark.epoch.programs import EpochProgram, Failed, Program, Told, of_bytes, to_bytes
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.runner import Batches
from tidemill.runtime.spark.epoch.steps import Step
from tidemill.runtime.spark.kernel import Report
from tidemill.spark_internals.pickling import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowEpochs:
    """``outputs``: of the job. ``lacking``: why its rows do not stay in Arrow; empty if they do. ``kept``:
    values that the programs of all epochs have."""

    outputs: Mapping[str, Output]
    lacking: str
    kept: Kept

    @classmethod
    def of(cls, outputs: Mapping[str, Output]) -> ArrowEpochs:
        lacking = needs_frames({key: o.node for key, o in outputs.items()})
        if any(isinstance(o, SinkOutput) and stager_of(o, 1) is None for o in outputs.values()):
            lacking = lacking or "a sink takes its rows elsewhere than where they are made"
        kept = Kept(_constants(output.node for output in outputs.values()))
        return cls(outputs=outputs, lacking=lacking, kept=kept)

    def steps(self, facts: EpochFacts, told: Told) -> list[Step] | None:
        """One for each output, which report to ``told``; None if this epoch needs frames."""
        if self.lacking:
            return None
        steps = ArrowSteps(replace(facts, report=told))
        made = [steps.mapped(o.node, _through(o, facts.epoch), "") for o in self.outputs.values()]
        # The kernels of an expression could not treat its rows.
        return made if next(rows_of_frames(made), None) is None else None

    def program(self, steps: Sequence[Step], reads: Reads, told: Told) -> bytes:
        """All of the epoch, pickled."""
        program = EpochProgram(steps=tuple(steps), reads=reads.all, told=told)
        return with_room(lambda: self.kept.pickled(program))

    def made(self, found: Sequence[Batches]) -> Made:
        """Of the batches of each step."""
        rows: pa.Table | None = None
        tokens: dict[str, list[str]] = {}
        for (key, output), batches in zip(self.outputs.items(), found, strict=True):
            if isinstance(output, CollectOutput):
                rows = collected(batches, output.schema)
            else:
                tokens[key] = [token for b in batches for token in b.column(0).to_pylist()]
        return rows, tokens

    def run(self, context: SparkContext, facts: EpochFacts, reads: Reads) -> Made | None:
        """Runs the epoch as one Spark task; None if it needs frames. What the steps report goes to the report
        of the ``facts``."""
        told = Told()
        steps = self.steps(facts, told)
        if steps is None:
            return None
        task = partial(_ran, self.program(steps, reads, told))
        ((report, found),) = context.parallelize((0,), 1).mapPartitions(task).collect()
        facts.report.add(report)
        if isinstance(found, str):
            raise Failed(found)
        return self.made([of_bytes(data) for data in found])


def _ran(program: bytes, given: Iterable[int]) -> Iterator[tuple[Report, list[bytes] | str]]:
    """What the program has told, and its results or a traceback. What a step left out, because it asks for
    another run, may be what a later one failed for: so the driver hears of it."""
    list(given)  # a worker that leaves some of its input is not used again
    loaded: Program = pickle.loads(program)
    made: list[bytes] | str
    try:
        made = [bytes(to_bytes(batches)) for batches in loaded.run(b"")]
    except Exception:
        if not any(task.get(AGAIN) or task.get(HOT) for task in loaded.told.report.values()):
            raise
        made = traceback.format_exc()
    yield loaded.told.report, made


def collected(batches: Batches, schema: pa.Schema) -> pa.Table:
    """The rows as the reader of a SELECT gets them of Spark's frames."""
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def _through(output: Output, epoch: int) -> BatchMap:
    if isinstance(output, CollectOutput):
        return iter
    stager = stager_of(output, epoch)
    if stager is None:
        raise InternalError("a sink takes its rows elsewhere than where they are made")
    return stager


def _constants(outputs: Iterable[g.ExecNode]) -> Iterator[object]:
    """What is large in the programs and the same in all epochs."""
    for node in (node for output in outputs for node in output.walk()):
        match node:
            case g.Keyed():
                yield node.spec
                yield from (port.schema for port in node.ports if port.schema is not None)
            case g.Select(arrays=g.Arrays(projection=projection)):
                yield from projection.columns
                yield projection.condition
            case g.Generate() if node.attached is not None:
                yield node.attached
            case g.Lookup():
                yield node.asking
