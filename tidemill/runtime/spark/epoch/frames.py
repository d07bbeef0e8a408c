"""One epoch's lazy Spark frames from the exec graph.

Each exec node becomes a frame once per epoch. What works on Arrow batches is a step (see ``steps``), of which
Spark makes a ``mapInArrow`` and, where rows cross, a shuffle of blocks. The JVM computes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.connectors.api import BatchMap
from tidemill.connectors.arrow_maps import map_batches, type_text
from tidemill.connectors.task_frames import read_frame
from tidemill.deep_calls import with_room
from tidemill.errors import InternalError
from tidemill.runtime import graph as g
from tidemill.runtime.spark.epoch.arrow_steps import ArrowSteps
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, NodeRows, Part, ReadRows, Step, United
from tidemill.runtime.spark.exchange import (
    BLOCK_COLUMN,
    FORM_COLUMN,
    PARTITION_COLUMN,
    PORT_COLUMN,
    TASK_COLUMN,
    Form,
)
from tidemill.runtime.spark.spread import READER_COLUMN
from tidemill.runtime.spark.user_columns import selected
from tidemill.runtime.spark.watermark_stage import Handover
from tidemill.types.physical import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFrames:
    """``reading``: in which branch of which union the frames are."""

    spark: SparkSession
    facts: EpochFacts
    reads: Reads
    reading: str = ""
    _made: dict[int, DataFrame] = field(default_factory=dict)
    _kept: dict[int, DataFrame] = field(default_factory=dict)

    def frame(self, node: g.ExecNode) -> DataFrame:
        """The lazy frame of ``node``: its columns, then its hidden columns."""
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = with_room(lambda: self._make(node))
        return made

    def mapped(self, node: g.ExecNode, through: BatchMap, schema: str) -> DataFrame:
        """``through`` over the batches of ``frame(node)``, in the workers that make them where nothing is
        computed in between."""
        return self._run(self._steps.mapped(node, through, schema))

    def close(self) -> None:
        """Gives back what was kept for several readers."""
        for frame in self._kept.values():
            frame.unpersist(blocking=False)

    @property
    def _steps(self) -> ArrowSteps:
        return ArrowSteps(self.facts, self.reading)

    # -- nodes ------------------------------------------------------------------------------------

    @singledispatchmethod
    def _make(self, node: g.ExecNode) -> DataFrame:
        raise InternalError(f"no frame for {type(node).__name__}")

    @_make.register
    def _(self, node: g.Read) -> DataFrame:
        spread, steps = self.facts.stages.spread(node), self._steps
        if spread is not None and steps.arrow.made(node):
            return self._run(steps.rows(node, None, node.schema))
        if id(node) in self._kept:
            return self._kept[id(node)]
        if steps.arrow.made(node):
            through = steps.tasks.counted(node, None)
            read = self._run(ReadRows(source=node.source, through=through, schema=node.schema))
        else:
            read = self.facts.sources[node.source].read(self.spark, *self.facts.ranges[node.source])
        frame = read.toDF(*node.columns, *node.hidden)
        return frame if spread is None else self._keep(id(node), frame)

    @_make.register
    def _(self, node: g.Select) -> DataFrame:
        columns, steps = (*node.columns, *node.hidden), self._steps
        if node.arrays is not None and columns and not node.timed and steps.arrow.go_on(node):
            return self._run(steps.on_the_way(node, iter, node.arrays.schema)).toDF(*columns)
        frame = self.frame(node.input)
        if node.condition is not None:
            frame = frame.where(F.expr(node.condition))
        if node.marked is not None:
            frame = frame.where(F.expr(_marked_text(node.marked)))
        if node.kind is not None:
            frame = frame.withColumn(KIND_COLUMN, F.expr(node.kind))
        return selected(frame, node.expressions, node.columns, node.hidden)

    @_make.register
    def _(self, node: g.Generate) -> DataFrame:
        kept = _named(node.expressions, node.columns[: len(node.expressions)])
        frame = self.frame(node.input).selectExpr(*kept, *map(quote, node.hidden), node.generator)
        return frame.select(*map(quote, (*node.columns, *node.hidden)))

    @_make.register
    def _(self, node: g.Lookup) -> DataFrame:
        stage = self._steps.tasks.lookup(node)
        made = map_batches(_plainly_named(self.frame(node.input)), stage, node.schema)
        return made.toDF(*node.columns, *node.hidden)

    @_make.register
    def _(self, node: g.Merge) -> DataFrame:
        return united(
            [
                self._branch(place, node).frame(branch).selectExpr(*aligned(branch, node))
                for place, branch in enumerate(node.branches)
            ]
        )

    def _branch(self, place: int, union: g.Merge) -> EpochFrames:
        """Where event time is read, branches have frames of their own."""
        reading = self._steps.of_branch(union, place).reading
        return self if reading == self.reading else replace(self, reading=reading, _made={})

    @_make.register
    def _(self, node: g.AssignWatermark) -> DataFrame:
        below, handover = self.frame(node.input), Handover(across=True)
        stage = self._steps.tasks.watermarks(node, node.input, (*node.columns, node.mark), handover)
        fields = [type_text(below.schema.fields[place].dataType) for place, _ in stage.kept]
        schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate([*fields, "BIGINT"]))
        made = map_batches(_plainly_named(below), stage, schema)
        return made.toDF(*node.columns, *node.hidden)

    @_make.register
    def _(self, node: g.Keyed) -> DataFrame:
        if node.timed and node.hands_on:
            stage, handover = self.facts.stages.stage(node), Handover(across=True)
            return self._run(self._steps.keyed(stage, None, node.schema, handover))
        return self._run(self._steps.rows(node, None, node.schema))

    # -- steps ------------------------------------------------------------------------------------

    @singledispatchmethod
    def _run(self, step: Step) -> DataFrame:
        raise InternalError(f"no frame for {type(step).__name__}")

    @_run.register
    def _(self, step: ReadRows) -> DataFrame:
        return read_frame(self.spark, self.reads.of(step.source), step.schema, step.through)

    @_run.register
    def _(self, step: NodeRows) -> DataFrame:
        frame = self.frame(step.node)
        return frame if step.named else _plainly_named(frame)

    @_run.register
    def _(self, step: Mapped) -> DataFrame:
        return map_batches(self._run(step.below), step.through, step.schema)

    @_run.register
    def _(self, step: United) -> DataFrame:
        return united([self._run(branch) for branch in step.branches])

    @_run.register
    def _(self, step: Exchanged) -> DataFrame:
        blocks = [self._run(sent) for sent in step.blocks]
        if step.ticks:
            blocks.append(ticks(self.spark, step.partitions))
        target = F.col(quote(PARTITION_COLUMN))
        exchanged = united(blocks).repartitionById(step.partitions, target)
        return map_batches(exchanged, step.task, step.schema)

    @_run.register
    def _(self, step: Part) -> DataFrame:
        kept = self._kept.get(step.key)
        if kept is None:
            kept = self._keep(step.key, self._run(step.whole))
        return kept.where(f"{quote(READER_COLUMN)} = {step.reader}").drop(READER_COLUMN)

    def _keep(self, key: int, frame: DataFrame) -> DataFrame:
        self._kept[key] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return frame


def _marked_text(marked: g.Marked) -> str:
    whole = f"{quote(KIND_COLUMN)} IN ({int(RowKind.INSERT)}, {int(RowKind.DELETE)})"
    return f"{whole} OR ({quote(marked.column)} & {marked.bits}) <> 0"


def _plainly_named(frame: DataFrame) -> DataFrame:
    """``c0..``: mapInArrow reads a dot in a name as a path into a struct, and wants some column."""
    if not frame.columns:
        return frame.selectExpr("0 AS c0")
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def _named(expressions: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    return [f"{e} AS {quote(n)}" for e, n in zip(expressions, names, strict=True)]


_TICK_COLUMNS = (
    ("CAST(id AS INT)", PARTITION_COLUMN),
    ("0", PORT_COLUMN),
    (f"{int(Form.TICK)}Y", FORM_COLUMN),
    ("0", TASK_COLUMN),
    ("X''", BLOCK_COLUMN),
)


def ticks(spark: SparkSession, partitions: int) -> DataFrame:
    """A tick for every partition, as exchange blocks. Cost: one small task."""
    return spark.range(0, partitions, 1, 1).selectExpr(
        *(f"{text} AS {quote(name)}" for text, name in _TICK_COLUMNS)
    )


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
    """The rows of ``frames``, by position and in order. Spark looks at a union's whole list of inputs for
    each input that is added. So the union is built from halves: the cost of n inputs grows with n log n, not
    with n squared."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return united(frames[:middle]).unionAll(united(frames[middle:]))
