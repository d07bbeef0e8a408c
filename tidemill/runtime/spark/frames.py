"""One epoch's lazy Spark frames from the exec graph.

Each exec node becomes a frame once per epoch; a node that several parents share is the same frame.
Keyed operators are a columnar exchange by key group (see ``exchange``) and a ``mapInArrow`` kernel; those
that need no exchange between them (see ``placement``) are one stage and one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce, singledispatchmethod

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.connectors.api import ArrowSource, BatchMap, Offset, Source
from tidemill.errors import InternalError
from tidemill.operators.api import LocalPhase
from tidemill.runtime import graph as g
from tidemill.runtime.placement import origin, origins_of, stays
from tidemill.runtime.spark.exchange import BLOCK_SCHEMA, PARTITION_COLUMN, ExchangeWriter, PortRows
from tidemill.runtime.spark.kernel import EpochTime, Exchanged, Fed, InPlace, KernelTask, Report
from tidemill.runtime.spark.user_columns import selected
from tidemill.runtime.spark.watermark_stage import Handover, WatermarkStage
from tidemill.types.physical import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFrames:
    """Everything the frames of one epoch depend on; ``ranges``: (start, end] per source id."""

    spark: SparkSession
    sources: dict[str, Source]
    ranges: dict[str, tuple[Offset | None, Offset]]
    state_root: str
    run_id: str
    manifests: dict[str, dict[int, str]]
    epoch: int
    time: int
    parallelism: int
    report: Accumulator[Report]
    parents: dict[int, int]
    event_time: EpochTime = field(default_factory=EpochTime)
    _made: dict[int, DataFrame] = field(default_factory=dict)

    def frame(self, node: g.ExecNode) -> DataFrame:
        """The lazy frame of ``node``: its columns, then its hidden columns."""
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._make(node)
        return made

    def mapped(self, node: g.ExecNode, through: BatchMap, schema: str) -> DataFrame:
        """``through`` over the batches of ``frame(node)``, in the workers that make them where nothing is
        computed in between."""
        below, columns = origin(node, node.columns)
        places = {name: place for place, name in enumerate((*below.columns, *below.hidden))}
        chosen = tuple(places[name] for name in (*columns, *node.hidden))
        renamed = _Renamed(places=chosen, names=(*node.columns, *node.hidden), then=through)
        if isinstance(below, g.Keyed) and self._parents(below) == 1:
            return self._keyed(below, renamed, schema)
        if isinstance(below, g.Read) and self._reads_arrow(below):
            return self._read_through(below, renamed, schema)
        return self.frame(node).mapInArrow(through, schema)

    @singledispatchmethod
    def _make(self, node: g.ExecNode) -> DataFrame:
        raise InternalError(f"no frame for {type(node).__name__}")

    @_make.register
    def _(self, node: g.Read) -> DataFrame:
        start, end = self.ranges[node.source]
        frame = self.sources[node.source].read(self.spark, start, end)
        return frame.toDF(*node.columns, *node.hidden)

    @_make.register
    def _(self, node: g.Select) -> DataFrame:
        frame = self.frame(node.input)
        if node.condition is not None:
            frame = frame.where(F.expr(node.condition))
        return selected(frame, node.expressions, node.columns, node.hidden)

    @_make.register
    def _(self, node: g.Generate) -> DataFrame:
        kept = _named(node.expressions, node.columns[: len(node.expressions)])
        frame = self.frame(node.input).selectExpr(*kept, *map(quote, node.hidden), node.generator)
        return frame.select(*map(quote, (*node.columns, *node.hidden)))

    @_make.register
    def _(self, node: g.Merge) -> DataFrame:
        merged: DataFrame | None = None
        for branch in node.branches:
            frame = self.frame(branch).selectExpr(*_aligned(branch, node))
            merged = frame if merged is None else merged.unionAll(frame)
        if merged is None:
            raise InternalError("a union without branches")
        return merged

    @_make.register
    def _(self, node: g.AssignWatermark) -> DataFrame:
        below = self.frame(node.input)
        stage = _stage(node, node.input, (*node.columns, node.mark), Handover(across=True))
        fields = [below.schema.fields[place].dataType.simpleString() for place, _ in stage.kept]
        schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate([*fields, "BIGINT"]))
        made = _plainly_named(below).mapInArrow(stage, schema)
        return made.toDF(*node.columns, *node.hidden)

    @_make.register
    def _(self, node: g.Keyed) -> DataFrame:
        return self._keyed(node, None, node.schema, Handover(across=True) if node.timed else None)

    def _keyed(
        self, node: g.Keyed, then: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> DataFrame:
        """The operator's output, or what ``then`` makes of it: the next operator's blocks, a sink's files."""
        leaves: list[_Leaf] = []
        task = replace(self._task(node, then, leaves), handover=handover)
        if len(leaves) == 1 and stays(leaves[0].node, leaves[0].port):
            below, writer = self._written(leaves[0], 0, combine=False)
            if leaves[0].port.timed:
                writer = replace(writer, handover=Handover(across=True), in_place=True)
            return _plainly_named(self.frame(below)).mapInArrow(InPlace(writer=writer, task=task), schema)
        exchanged = reduce(
            DataFrame.unionAll, (self._sent(leaf, number) for number, leaf in enumerate(leaves))
        )
        target = F.col(quote(PARTITION_COLUMN))
        return exchanged.repartitionById(self._partitions(node), target).mapInArrow(task, schema)

    def _task(self, node: g.Keyed, then: BatchMap | None, leaves: list[_Leaf]) -> KernelTask:
        """The operator's task with those that can run within it; ``leaves`` gains what must be sent."""
        return KernelTask(
            operator=node.operator,
            spec=node.spec,
            state_root=self.state_root,
            run_id=self.run_id,
            base=self.manifests.get(node.operator, {}),
            epoch=self.epoch,
            time=self.time,
            inputs=tuple(self._input(node, port, leaves) for port in node.ports),
            then=then,
            report=self.report,
            event_time=self.event_time,
        )

    def _input(self, node: g.Keyed, port: g.Port, leaves: list[_Leaf]) -> Exchanged | Fed:
        below, shape = _port_rows(port)
        if isinstance(below, g.Keyed) and self._parents(below) == 1 and stays(node, port):
            task = self._task(below, None, leaves)
            return Fed(task=task, shape=shape, schema=port.schema, origins=origins_of(port))
        leaves.append(_Leaf(node, port))
        return Exchanged(number=len(leaves) - 1, schema=port.schema, origins=origins_of(port))

    def _partitions(self, node: g.Keyed) -> int:
        return 1 if node.single else self.parallelism

    def _sent(self, leaf: _Leaf, number: int) -> DataFrame:
        """A port's rows as exchange blocks, written where they are made if that is possible."""
        below, writer = self._written(leaf, number, combine=leaf.node.local)
        handover = Handover(across=False) if leaf.port.timed else None
        if isinstance(below, g.Keyed) and self._parents(below) == 1:
            return self._keyed(below, replace(writer, handover=handover), BLOCK_SCHEMA, handover)
        if isinstance(below, g.AssignWatermark):
            read, columns = origin(below.input, (*below.columns, below.mark))
            stage = _stage(below, read, columns, handover, replace(writer, handover=handover))
            if isinstance(read, g.Read) and self._reads_arrow(read):
                return self._read_through(read, stage)
        if isinstance(below, g.Read) and self._reads_arrow(below):
            return self._read_through(below, writer)
        across = replace(writer, handover=Handover(across=True) if leaf.port.timed else None)
        return _plainly_named(self.frame(below)).mapInArrow(across, BLOCK_SCHEMA)

    def _reads_arrow(self, node: g.Read) -> bool:
        source: object = self.sources[node.source]
        return isinstance(source, ArrowSource)

    def _read_through(self, node: g.Read, through: BatchMap, schema: str = BLOCK_SCHEMA) -> DataFrame:
        source: object = self.sources[node.source]
        assert isinstance(source, ArrowSource)
        start, end = self.ranges[node.source]
        return source.read_through(self.spark, start, end, through, schema)

    def _written(self, leaf: _Leaf, number: int, *, combine: bool) -> tuple[g.ExecNode, ExchangeWriter]:
        """What makes a port's rows, and the writer of their blocks."""
        below, shape = _port_rows(leaf.port)
        spec = leaf.node.spec
        local = spec if combine and isinstance(spec, LocalPhase) else None
        partitions = self._partitions(leaf.node)
        return below, ExchangeWriter(port=number, rows=shape, partitions=partitions, local=local)

    def _parents(self, node: g.Keyed) -> int:
        return self.parents.get(id(node), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renamed:
    """Chooses columns by place and names them for ``then``."""

    places: tuple[int, ...]
    names: tuple[str, ...]
    then: BatchMap

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.then(
            pa.RecordBatch.from_arrays([batch.column(p) for p in self.places], names=list(self.names))
            for batch in batches
        )


@dataclass(frozen=True, slots=True)
class _Leaf:
    """An input that comes from outside the task."""

    node: g.Keyed
    port: g.Port


def _port_rows(port: g.Port) -> tuple[g.ExecNode, PortRows]:
    """The node that makes a port's rows, and how they look to the kernel."""
    below, columns = origin(port.input, port.references)
    places = {name: place for place, name in enumerate((*below.columns, *below.hidden))}
    wanted = (*zip(columns, port.columns, strict=True), *((h, h) for h in port.hidden))
    return below, PortRows(
        columns=tuple((places[name], kernel_name) for name, kernel_name in wanted), keys=port.keys
    )


def _stage(
    node: g.AssignWatermark,
    below: g.ExecNode,
    columns: tuple[str, ...],
    handover: Handover | None,
    then: BatchMap | None = None,
) -> WatermarkStage:
    """The stage over batches of ``below``, whose ``columns`` are those of the node, then its mark."""
    places = {name: place for place, name in enumerate((*below.columns, *below.hidden))}
    hidden = tuple(h for h in node.hidden if h != WATERMARK_COLUMN)
    kept = (*zip(columns, node.columns, strict=False), *((h, h) for h in hidden))
    return WatermarkStage(
        source=node.source,
        rowtime=places[columns[node.columns.index(node.rowtime)]],
        mark=places[columns[-1]],
        delay=node.delay,
        interval=node.interval,
        kept=tuple((places[old], new) for old, new in kept),
        handover=handover,
        then=then,
    )


def _plainly_named(frame: DataFrame) -> DataFrame:
    """``c0..``: mapInArrow reads a dot in a name as a path into a struct, and wants some column."""
    if not frame.columns:
        return frame.selectExpr("0 AS c0")
    return frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))


def _named(expressions: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    return [f"{e} AS {quote(n)}" for e, n in zip(expressions, names, strict=True)]


def _aligned(branch: g.ExecNode, union: g.Merge) -> list[str]:
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
