"""The picklable tasks of one epoch, which Python workers run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import BatchMap, SplitSource
from tidemill.operators.api import LocalPhase
from tidemill.operators.buckets import Everywhere
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.runtime import graph as g
from tidemill.runtime.placement import Origin, origin, origins_of
from tidemill.runtime.spark.computed import Computed
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.shapes import (
    Followed,
    Renamed,
    Windowed,
    column_positions,
    marked_rows,
    port_rows,
    watermark_stage,
)
from tidemill.runtime.spark.exchange import ExchangeWriter, Writers
from tidemill.runtime.spark.kernel import ChainedInput, KernelTask, ShuffledInput
from tidemill.runtime.spark.late_rows import LateWriter
from tidemill.runtime.spark.lookup_stage import LookupStage
from tidemill.runtime.spark.reading import CountedReading
from tidemill.runtime.spark.spread import SpreadWriter
from tidemill.runtime.spark.watermark_stage import Handover, WatermarkStage
from tidemill.runtime.stages import Leaf, Spread, Task


@dataclass(frozen=True, slots=True)
class Tasks:
    """``reading``: in which branch of which union."""

    facts: EpochFacts
    reading: str = ""

    def counted(self, node: g.Read, then: BatchMap | None) -> CountedReading:
        facts = self.facts
        return CountedReading(
            source=node.source, reading=self.reading, epoch=facts.epoch, report=facts.report, then=then
        )

    def computed(self, arrays: g.Arrays, node: g.Select, found: Origin, then: BatchMap) -> Computed:
        positions = column_positions(found.node)
        by_name = dict(zip(arrays.projection.names, found.columns, strict=True))
        return Computed(
            operator=arrays.name,
            projection=arrays.projection.with_columns(node.hidden),
            positions=tuple((name, positions[below]) for name, below in by_name.items())
            + tuple((name, positions[name]) for name in node.hidden),
            names=(*node.columns, *node.hidden),
            epoch=self.facts.epoch,
            time=self.facts.time,
            then=then,
            report=self.facts.report,
            marked=marked_rows(found.node, found.marked),
        )

    def windowed(
        self, node: g.Generate, attached: AttachedWindows, found: Origin, then: BatchMap
    ) -> Windowed:
        positions = column_positions(found.node)
        return Windowed(
            windows=attached,
            kept=tuple(positions[name] for name in (*found.columns, *node.hidden)),
            hidden=len(node.hidden),
            time=node.input.columns.index(node.time),
            names=(*node.columns, *node.hidden),
            then=then,
        )

    def watermarks(
        self,
        node: g.AssignWatermark,
        below: g.ExecNode,
        columns: tuple[str, ...],
        handover: Handover | None,
        then: BatchMap | None = None,
    ) -> WatermarkStage:
        stage = replace(watermark_stage(node, below, columns, handover, then), reading=self.reading)
        source = self.facts.sources[node.source]
        if not isinstance(source, SplitSource):
            return stage
        splits = source.splits(*self.facts.ranges[node.source])
        return replace(
            stage,
            splits=self.facts.event_time.of_splits(node.source, splits),
            sequence=column_positions(below)[SEQUENCE_COLUMN],
        )

    def lookup(self, node: g.Lookup) -> LookupStage:
        facts, below = self.facts, node.input
        positions = column_positions(below)
        return LookupStage(
            asking=node.asking,
            keys=tuple(positions[name] for name in node.keys),
            outer=node.outer,
            bundle=node.bundle,
            nested=node.nested,
            width=len(below.columns),
            kind=positions.get(KIND_COLUMN),
            name=node.name,
            scope=f"{facts.state_root.location} {facts.run_id} {node.name}",
            epoch=facts.epoch,
            report=facts.report,
        )

    def looked_up(self, node: g.Lookup, found: Origin, then: BatchMap) -> Renamed:
        positions = column_positions(found.node)
        below = (*found.columns, *node.input.hidden)
        return Renamed(
            positions=tuple(positions[name] for name in below),
            names=tuple(f"c{place}" for place in range(len(below))),
            marked=marked_rows(found.node, found.marked),
            then=Followed(first=self.lookup(node), names=(*node.columns, *node.hidden), then=then),
        )

    def united(self, branch: g.ExecNode, found: Origin, union: g.Merge, then: BatchMap) -> Renamed:
        """``then`` over the rows of a ``branch``, which ``found`` makes, as the union has them."""
        positions = column_positions(found.node)
        hidden = (positions[name] if name in branch.hidden else None for name in union.hidden)
        return Renamed(
            positions=(*(positions[name] for name in found.columns), *hidden),
            names=(*union.columns, *union.hidden),
            marked=marked_rows(found.node, found.marked),
            then=then,
        )

    # -- kernels ----------------------------------------------------------------------------------

    def kernel(self, task: Task, then: BatchMap | None) -> KernelTask:
        """The operator's step, or what ``then`` makes of its output: the next operator's blocks, a sink's
        files."""
        facts, node = self.facts, task.node
        return KernelTask(
            operator=node.operator,
            spec=node.spec,
            state_root=facts.state_root,
            run_id=facts.run_id,
            base=facts.state.get(node.operator, {}),
            partitions=self.partitions(node),
            epoch=facts.epoch,
            time=facts.time,
            inputs=tuple(map(self._input, task.inputs, node.ports)),
            then=then,
            report=facts.report,
            event_time=facts.event_time,
            clocked=node.clocked,
            late=self._late(node),
            first=all(isinstance(i, Leaf) and not isinstance(i.below, g.Keyed) for i in task.inputs),
        )

    def _late(self, node: g.Keyed) -> LateWriter | None:
        """Late rows of an operator of one input are told by the names of the plan."""
        late = self.facts.late
        if late is None or len(node.ports) > 1:
            return late
        (port,) = node.ports
        return replace(late, names=dict(zip(port.columns, port.references, strict=True)))

    def _input(self, given: Leaf | Task, port: g.Port) -> ShuffledInput | ChainedInput:
        if isinstance(given, Leaf):
            return ShuffledInput(
                number=given.number,
                schema=port.schema,
                origins=origins_of(port),
                counted=port.summary is None,
                behind=port.behind,
            )
        found = origin(port.input, port.references)
        return ChainedInput(
            task=self.kernel(given, None),
            shape=port_rows(found.node, found.columns, found.marked, port),
            schema=port.schema,
            origins=origins_of(port),
            behind=port.behind,
        )

    def partitions(self, node: g.Keyed) -> int:
        return 1 if node.single else self.facts.parallelism

    # -- exchanges --------------------------------------------------------------------------------

    def writers(self, group: tuple[Leaf, ...], *, across: bool = False, in_place: bool = False) -> Writers:
        """``across``: rows are made in another worker than they are written in."""
        timed = any(leaf.port.timed for leaf in group)
        return Writers(
            ports=tuple(self._writer(leaf, in_place) for leaf in group),
            handover=Handover(across=across) if timed else None,
            folder=None if in_place else self.facts.folder,
        )

    def spread_writer(self, spread: Spread) -> SpreadWriter:
        readers = tuple((number, self.writers(group)) for number, group in spread.groups.items())
        return SpreadWriter(readers=readers, rows=spread.rows > 0, folder=self.facts.folder)

    def _writer(self, leaf: Leaf, in_place: bool) -> ExchangeWriter:
        facts, spec = self.facts, leaf.node.spec
        combines = leaf.node.local and not in_place and leaf.node.operator not in facts.whole
        rows = port_rows(leaf.below, leaf.columns, leaf.marked, leaf.port)
        if isinstance(rows.buckets, Everywhere):
            hot = tuple(facts.hot.get(leaf.node.operator, ()))
            rows = replace(rows, buckets=replace(rows.buckets, hot=hot))
        return ExchangeWriter(
            port=leaf.number,
            rows=rows,
            partitions=self.partitions(leaf.node),
            local=spec if combines and isinstance(spec, LocalPhase) else None,
            summary=leaf.port.summary,
            timed=leaf.port.timed,
            in_place=in_place,
        )
