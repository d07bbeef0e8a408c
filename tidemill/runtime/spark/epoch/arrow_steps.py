"""The steps of nodes that work on Arrow batches, in the workers that have these.

Keyed operators are an exchange of blocks by key group and a kernel's task; those that need no exchange
between them are one stage and one task (see ``runtime.stages``). A read or an operator with several readers
runs once for all of them (``spread``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.connectors.api import BatchMap
from tidemill.errors import InternalError
from tidemill.runtime import graph as g
from tidemill.runtime.arrow_rows import ArrowRows, computed_over
from tidemill.runtime.placement import origin
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.shapes import Renamed, column_positions, marked_rows
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, NodeRows, Part, ReadRows, Step, United
from tidemill.runtime.spark.epoch.tasks import Tasks
from tidemill.runtime.spark.exchange import BLOCK_SCHEMA
from tidemill.runtime.spark.kernel import InPlace, KernelTask
from tidemill.runtime.spark.spread import ROWS, SPREAD_SCHEMA, RowsOfBlocks
from tidemill.runtime.spark.watermark_stage import Handover
from tidemill.runtime.stages import Leaf, Stage


@dataclass(frozen=True, slots=True)
class ArrowSteps:
    """``reading``: in which branch of which union they are."""

    facts: EpochFacts
    reading: str = ""

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.facts, self.reading)

    @property
    def arrow(self) -> ArrowRows:
        return ArrowRows(in_java=self.facts.whole)

    def mapped(self, node: g.ExecNode, through: BatchMap, schema: str) -> Step:
        """``through`` over the batches of ``node``, in the workers that make them where nothing is computed
        in between. Its batches have the node's columns under their names."""
        found = origin(node, node.columns)
        below, positions = found.node, column_positions(found.node)
        chosen = tuple(positions[name] for name in (*found.columns, *node.hidden))
        names = (*node.columns, *node.hidden)
        renamed = Renamed(
            positions=chosen, names=names, marked=marked_rows(below, found.marked), then=through
        )
        if self.arrow.follows(below):
            return self.rows(below, renamed, schema)
        return Mapped(below=NodeRows(node=node, named=True), through=through, schema=schema)

    def rows(
        self, node: g.ExecNode, then: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> Step:
        """The rows of a node that makes Arrow batches, or what ``then`` makes of them; ``handover`` as in
        ``through``."""
        if self.facts.stages.spread(node) is None:
            return self.through(node, then, schema, handover)
        whole = RowsOfBlocks(names=(*node.columns, *node.hidden), then=then)
        return Mapped(below=self._part(node, ROWS), through=whole, schema=schema)

    def through(
        self, node: g.ExecNode, through: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> Step:
        """``through`` over the node's batches, in the workers that make them; they leave the control of their
        event time in ``handover``."""
        if isinstance(node, g.Keyed):
            return self.keyed(self.facts.stages.stage(node), through, schema, handover)
        if through is not None and self.arrow.go_on(node):
            return self.on_the_way(node, through, schema, handover)
        if through is not None and isinstance(node, g.Read) and self.arrow.made(node):
            return ReadRows(source=node.source, through=self.tasks.counted(node, through), schema=schema)
        if through is None:
            return NodeRows(node=node, named=True)
        return Mapped(below=NodeRows(node=node), through=through, schema=schema)

    def on_the_way(
        self, node: g.ExecNode, through: BatchMap, schema: str, handover: Handover | None = None
    ) -> Step:
        """``through`` over what the node makes of batches, in the workers that have these."""
        if isinstance(node, g.AssignWatermark):
            found = origin(node.input, (*node.columns, node.mark))
            stage = self.tasks.watermarks(node, found.node, found.columns, handover, through)
            return self.rows(found.node, stage, schema)
        if isinstance(node, g.Generate) and node.attached is not None:
            found = origin(node.input, node.input.columns)
            windowed = self.tasks.windowed(node, node.attached, found, through)
            return self.rows(found.node, windowed, schema, handover)
        if isinstance(node, g.Select) and node.arrays is not None:
            found = computed_over(node)
            computed = self.tasks.computed(node.arrays, node, found, through)
            return self.rows(found.node, computed, schema, handover)
        if isinstance(node, g.Lookup):
            found = origin(node.input, node.input.columns)
            return self.rows(found.node, self.tasks.looked_up(node, found, through), schema, handover)
        if isinstance(node, g.Merge):
            places = range(len(node.branches))
            return United(
                branches=tuple(self._branch(node, place, through, schema, handover) for place in places)
            )
        raise InternalError(f"{type(node).__name__} is not made where its input is")

    def _branch(
        self, union: g.Merge, place: int, through: BatchMap, schema: str, handover: Handover | None
    ) -> Step:
        branch = union.branches[place]
        found = origin(branch, branch.columns)
        return self.of_branch(union, place).rows(
            found.node, self.tasks.united(branch, found, union, through), schema, handover
        )

    def of_branch(self, union: g.Merge, place: int) -> ArrowSteps:
        """Where event time is read, rows of one source that come by two branches are two sequences: Spark
        counts the tasks of both together."""
        return replace(self, reading=f"{self.reading}/{place}") if union.timed else self

    def keyed(
        self, stage: Stage, then: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> Step:
        """The operator's output, or what ``then`` makes of it: the next operator's blocks, a sink's files."""
        task = replace(self.tasks.kernel(stage.task, then), handover=handover)
        if stage.in_place:
            return self._in_place(stage, task, schema)
        return Exchanged(
            blocks=tuple(self._sent(stage, group) for group in stage.groups),
            partitions=self.tasks.partitions(stage.node),
            # Also where nothing of this stage is due: what is above may only run where this one does.
            ticks=bool(self.facts.event_time.due),
            task=task,
            schema=schema,
        )

    def _part(self, node: g.ExecNode, reader: int) -> Part:
        """A reader's blocks of a node that runs once for several."""
        spread = self.facts.stages.spread(node)
        if spread is None:
            raise InternalError("a node of one reader is not spread")
        whole = self.through(node, self.tasks.spread_writer(spread), SPREAD_SCHEMA)
        return Part(key=id(node), whole=whole, reader=reader)

    def _in_place(self, stage: Stage, task: KernelTask, schema: str) -> Step:
        (group,) = stage.groups
        below = group[0].below
        if self._is_spread(below):
            return Mapped(below=self._part(below, stage.number), through=task, schema=schema)
        writers = self.tasks.writers(group, across=True, in_place=True)
        within = InPlace(writer=writers, task=task)
        made_here = isinstance(below, g.Keyed) or (isinstance(below, g.Select) and self.arrow.go_on(below))
        if made_here and not below.timed:
            return self.through(below, within, schema)
        return Mapped(below=NodeRows(node=below), through=within, schema=schema)

    def _is_spread(self, node: g.ExecNode) -> bool:
        return self.facts.stages.spread(node) is not None and self.arrow.made(node)

    def _sent(self, stage: Stage, group: tuple[Leaf, ...]) -> Step:
        """A group's rows as exchange blocks, written where they are made if that is possible."""
        below = group[0].below
        if self._is_spread(below):
            return self._part(below, stage.number)
        across = not (isinstance(below, g.Keyed) or self.arrow.go_on(below))
        writers = self.tasks.writers(group, across=across)
        return self.through(below, writers, BLOCK_SCHEMA, None if across else writers.handover)
