"""One epoch's lazy Spark frames from the exec graph.

Each exec node becomes a frame once per epoch. Keyed operators are a columnar exchange by key group (see
``exchange``) and a ``mapInArrow`` kernel; those that need no exchange between them are one stage and one task
(see ``runtime.stages``). A read or an operator with several readers runs once for all of them (``spread``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

import pyarrow as pa
from pyspark import Accumulator, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.connectors.api import ArrowSource, BatchMap, Offset, Source, SplitSource
from tidemill.connectors.arrow_maps import map_batches, type_text
from tidemill.deep_calls import with_room
from tidemill.errors import InternalError
from tidemill.files.storage import Storage
from tidemill.operators.api import LocalPhase
from tidemill.operators.buckets import Everywhere
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.runtime import graph as g
from tidemill.runtime.arrow_rows import ArrowRows, computed_over
from tidemill.runtime.hot_keys import Hot
from tidemill.runtime.placement import Origin, origin, origins_of
from tidemill.runtime.spark.computed import Computed
from tidemill.runtime.spark.exchange import (
    BLOCK_SCHEMA,
    PARTITION_COLUMN,
    ExchangeWriter,
    MarkedRows,
    PortRows,
    Writers,
)
from tidemill.runtime.spark.kernel import ChainedInput, EpochTime, InPlace, KernelTask, Report, ShuffledInput
from tidemill.runtime.spark.late_rows import LateWriter
from tidemill.runtime.spark.lookup_stage import LookupStage
from tidemill.runtime.spark.reading import CountedReading
from tidemill.runtime.spark.spread import READER_COLUMN, ROWS, SPREAD_SCHEMA, RowsOfBlocks, SpreadWriter
from tidemill.runtime.spark.ticks import ticks
from tidemill.runtime.spark.unions import aligned, united
from tidemill.runtime.spark.user_columns import selected
from tidemill.runtime.spark.watermark_stage import Handover, WatermarkStage
from tidemill.runtime.stages import Leaf, Stage, Stages, Task
from tidemill.state.slices import Slices
from tidemill.types.physical import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFrames:
    """Everything the frames of one epoch depend on; ``ranges``: (start, end] per source id; ``reading``: in
    which branch of which union they are; ``folder``: of the large blocks of exchanges; ``whole``: operators
    whose rows are not combined before their exchange, and projections that the JVM computes; ``hot``: keys
    whose rows they get in all buckets."""

    spark: SparkSession
    sources: dict[str, Source]
    ranges: dict[str, tuple[Offset | None, Offset]]
    state_root: Storage
    run_id: str
    state: Slices
    epoch: int
    time: int
    parallelism: int
    report: Accumulator[Report]
    stages: Stages
    event_time: EpochTime = field(default_factory=EpochTime)
    late: LateWriter | None = None
    reading: str = ""
    folder: str | None = None
    whole: frozenset[str] = frozenset()
    hot: Hot = field(default_factory=dict)
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
        found = origin(node, node.columns)
        below, places = found.node, _places(found.node)
        chosen = tuple(places[name] for name in (*found.columns, *node.hidden))
        names = (*node.columns, *node.hidden)
        renamed = _Renamed(places=chosen, names=names, marked=_marked(below, found.marked), then=through)
        if self._arrow.made(below) or (isinstance(below, g.Select) and self._arrow.go_on(below)):
            return self._rows(below, renamed, schema)
        return map_batches(self.frame(node), through, schema)

    def close(self) -> None:
        """Gives back what was kept for several readers."""
        for frame in self._kept.values():
            frame.unpersist(blocking=False)

    @singledispatchmethod
    def _make(self, node: g.ExecNode) -> DataFrame:
        raise InternalError(f"no frame for {type(node).__name__}")

    @_make.register
    def _(self, node: g.Read) -> DataFrame:
        spread = self.stages.spread(node)
        if spread is not None and self._arrow.made(node):
            return self._rows(node, None, node.schema)
        if id(node) in self._kept:
            return self._kept[id(node)]
        start, end = self.ranges[node.source]
        source: object = self.sources[node.source]
        if isinstance(source, ArrowSource):
            read = source.read_through(self.spark, start, end, self._counted(node, None), node.schema)
        else:
            read = self.sources[node.source].read(self.spark, start, end)
        frame = read.toDF(*node.columns, *node.hidden)
        return frame if spread is None else self._keep(node, frame)

    @_make.register
    def _(self, node: g.Select) -> DataFrame:
        columns = (*node.columns, *node.hidden)
        if node.arrays is not None and columns and not node.timed and self._arrow.go_on(node):
            return self._on_the_way(node, iter, node.arrays.schema, None).toDF(*columns)
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
        below = node.input
        places = _places(below)
        stage = LookupStage(
            asking=node.asking,
            keys=tuple(places[name] for name in node.keys),
            outer=node.outer,
            bundle=node.bundle,
            nested=node.nested,
            width=len(below.columns),
            kind=places.get(KIND_COLUMN),
            name=node.name,
            scope=f"{self.state_root.location} {self.run_id} {node.name}",
            epoch=self.epoch,
            report=self.report,
        )
        made = map_batches(_plainly_named(self.frame(below)), stage, node.schema)
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
        """Where event time is read, branches have frames of their own: rows of one source that come by two
        branches are two sequences, though Spark counts the tasks of both together."""
        if WATERMARK_COLUMN not in union.hidden:
            return self
        return replace(self, reading=f"{self.reading}/{place}", _made={})

    @_make.register
    def _(self, node: g.AssignWatermark) -> DataFrame:
        below = self.frame(node.input)
        stage = self._stage(node, node.input, (*node.columns, node.mark), Handover(across=True))
        stage = replace(stage, reading=self.reading)
        fields = [type_text(below.schema.fields[place].dataType) for place, _ in stage.kept]
        schema = ", ".join(f"c{place} {kind}" for place, kind in enumerate([*fields, "BIGINT"]))
        made = map_batches(_plainly_named(below), stage, schema)
        return made.toDF(*node.columns, *node.hidden)

    @_make.register
    def _(self, node: g.Keyed) -> DataFrame:
        if node.timed and node.hands_on:
            return self._keyed(self.stages.stage(node), None, node.schema, Handover(across=True))
        return self._rows(node, None, node.schema)

    @property
    def _arrow(self) -> ArrowRows:
        return ArrowRows(reads=self._reads_arrow, in_java=self.whole)

    def _reads_arrow(self, node: g.Read) -> bool:
        source: object = self.sources[node.source]
        return isinstance(source, ArrowSource)

    def _rows(
        self, node: g.ExecNode, then: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> DataFrame:
        """The rows of a node that makes Arrow batches, or what ``then`` makes of them; ``handover`` as in
        ``_through``."""
        if self.stages.spread(node) is None:
            return self._through(node, then, schema, handover)
        whole = RowsOfBlocks(names=(*node.columns, *node.hidden), then=then)
        return map_batches(self._part(node, ROWS), whole, schema)

    def _through(
        self, node: g.ExecNode, through: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> DataFrame:
        """``through`` over the node's batches, in the workers that make them; they leave the control of their
        event time in ``handover``."""
        if isinstance(node, g.Keyed):
            return self._keyed(self.stages.stage(node), through, schema, handover)
        if through is not None and self._arrow.go_on(node):
            return self._on_the_way(node, through, schema, handover)
        if isinstance(node, g.Read) and through is not None:
            source: object = self.sources[node.source]
            if isinstance(source, ArrowSource):
                start, end = self.ranges[node.source]
                return source.read_through(self.spark, start, end, self._counted(node, through), schema)
        frame = self.frame(node)
        return frame if through is None else map_batches(_plainly_named(frame), through, schema)

    def _counted(self, node: g.Read, then: BatchMap | None) -> CountedReading:
        return CountedReading(
            source=node.source, reading=self.reading, epoch=self.epoch, report=self.report, then=then
        )

    def _on_the_way(
        self, node: g.ExecNode, through: BatchMap, schema: str, handover: Handover | None
    ) -> DataFrame:
        """``through`` over what the node makes of batches, in the workers that have these."""
        if isinstance(node, g.AssignWatermark):
            found = origin(node.input, (*node.columns, node.mark))
            stage = self._stage(node, found.node, found.columns, handover, through)
            return self._rows(found.node, stage, schema)
        if isinstance(node, g.Generate) and node.attached is not None:
            found = origin(node.input, node.input.columns)
            places = _places(found.node)
            windowed = _Windowed(
                windows=node.attached,
                kept=tuple(places[name] for name in (*found.columns, *node.hidden)),
                hidden=len(node.hidden),
                time=node.input.columns.index(node.time),
                names=(*node.columns, *node.hidden),
                then=through,
            )
            return self._through(found.node, windowed, schema, handover)
        if isinstance(node, g.Select) and node.arrays is not None:
            found = computed_over(node)
            computed = self._computed(node.arrays, node, found, through)
            return self._rows(found.node, computed, schema, handover)
        raise InternalError(f"{type(node).__name__} is not made where its input is")

    def _computed(self, arrays: g.Arrays, node: g.Select, found: Origin, then: BatchMap) -> Computed:
        places = _places(found.node)
        by_name = dict(zip(arrays.projection.names, found.columns, strict=True))
        return Computed(
            operator=arrays.name,
            projection=arrays.projection.with_columns(node.hidden),
            places=tuple((name, places[below]) for name, below in by_name.items())
            + tuple((name, places[name]) for name in node.hidden),
            names=(*node.columns, *node.hidden),
            epoch=self.epoch,
            then=then,
            report=self.report,
            marked=_marked(found.node, found.marked),
        )

    def _stage(
        self,
        node: g.AssignWatermark,
        below: g.ExecNode,
        columns: tuple[str, ...],
        handover: Handover | None,
        then: BatchMap | None = None,
    ) -> WatermarkStage:
        stage, source = _stage(node, below, columns, handover, then), self.sources[node.source]
        found: object = source
        if not isinstance(found, SplitSource):
            return stage
        splits = found.splits(*self.ranges[node.source])
        return replace(
            stage,
            splits=self.event_time.of_splits(node.source, splits),
            sequence=_places(below)[SEQUENCE_COLUMN],
        )

    def _part(self, node: g.ExecNode, reader: int) -> DataFrame:
        """A reader's blocks of a node that runs once for several."""
        spread = self.stages.spread(node)
        if spread is None:
            raise InternalError("a node of one reader is not spread")
        kept = self._kept.get(id(node))
        if kept is None:
            readers = tuple((number, self._writers(group)) for number, group in spread.groups.items())
            writer = SpreadWriter(readers=readers, rows=spread.rows > 0, folder=self.folder)
            kept = self._keep(node, self._through(node, writer, SPREAD_SCHEMA))
        return kept.where(f"{quote(READER_COLUMN)} = {reader}").drop(READER_COLUMN)

    def _keep(self, node: g.ExecNode, frame: DataFrame) -> DataFrame:
        self._kept[id(node)] = frame.persist(StorageLevel.MEMORY_AND_DISK)
        return frame

    def _keyed(
        self, stage: Stage, then: BatchMap | None, schema: str, handover: Handover | None = None
    ) -> DataFrame:
        """The operator's output, or what ``then`` makes of it: the next operator's blocks, a sink's files."""
        task = replace(self._task(stage.task, then), handover=handover)
        if stage.in_place:
            return self._in_place(stage, task, schema)
        partitions = self._partitions(stage.node)
        blocks = [self._sent(stage, group) for group in stage.groups]
        if self.event_time.due:
            # Also where nothing of this stage is due: what is above may only run where this one does.
            blocks.append(ticks(self.spark, partitions))
        target = F.col(quote(PARTITION_COLUMN))
        return map_batches(united(blocks).repartitionById(partitions, target), task, schema)

    def _in_place(self, stage: Stage, task: KernelTask, schema: str) -> DataFrame:
        (group,) = stage.groups
        below = group[0].below
        if self._is_spread(below):
            return map_batches(self._part(below, stage.number), task, schema)
        writers = self._writers(group, across=True, in_place=True)
        made_here = isinstance(below, g.Keyed) or (isinstance(below, g.Select) and self._arrow.go_on(below))
        if made_here and not below.timed:
            return self._through(below, InPlace(writer=writers, task=task), schema)
        return map_batches(_plainly_named(self.frame(below)), InPlace(writer=writers, task=task), schema)

    def _is_spread(self, node: g.ExecNode) -> bool:
        return self.stages.spread(node) is not None and self._arrow.made(node)

    def _sent(self, stage: Stage, group: tuple[Leaf, ...]) -> DataFrame:
        """A group's rows as exchange blocks, written where they are made if that is possible."""
        below = group[0].below
        if self._is_spread(below):
            return self._part(below, stage.number)
        across = not (isinstance(below, g.Keyed) or self._arrow.go_on(below))
        writers = self._writers(group, across=across)
        return self._through(below, writers, BLOCK_SCHEMA, None if across else writers.handover)

    def _task(self, task: Task, then: BatchMap | None) -> KernelTask:
        node = task.node
        return KernelTask(
            operator=node.operator,
            spec=node.spec,
            state_root=self.state_root,
            run_id=self.run_id,
            base=self.state.get(node.operator, {}),
            partitions=self._partitions(node),
            epoch=self.epoch,
            time=self.time,
            inputs=tuple(map(self._input, task.inputs, node.ports)),
            then=then,
            report=self.report,
            event_time=self.event_time,
            clocked=node.clocked,
            late=self._late(node),
            first=all(isinstance(i, Leaf) and not isinstance(i.below, g.Keyed) for i in task.inputs),
        )

    def _late(self, node: g.Keyed) -> LateWriter | None:
        """Late rows of an operator of one input are told by the names of the plan."""
        if self.late is None or len(node.ports) > 1:
            return self.late
        (port,) = node.ports
        return replace(self.late, names=dict(zip(port.columns, port.references, strict=True)))

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
            task=self._task(given, None),
            shape=_shape(found.node, found.columns, found.marked, port),
            schema=port.schema,
            origins=origins_of(port),
            behind=port.behind,
        )

    def _partitions(self, node: g.Keyed) -> int:
        return 1 if node.single else self.parallelism

    def _writers(self, group: tuple[Leaf, ...], *, across: bool = False, in_place: bool = False) -> Writers:
        """``across``: rows are made in another worker than they are written in."""
        timed = any(leaf.port.timed for leaf in group)
        return Writers(
            ports=tuple(self._writer(leaf, in_place) for leaf in group),
            handover=Handover(across=across) if timed else None,
            folder=None if in_place else self.folder,
        )

    def _writer(self, leaf: Leaf, in_place: bool) -> ExchangeWriter:
        spec = leaf.node.spec
        combines = leaf.node.local and not in_place and leaf.node.operator not in self.whole
        rows = _shape(leaf.below, leaf.columns, leaf.marked, leaf.port)
        if isinstance(rows.buckets, Everywhere):
            hot = tuple(self.hot.get(leaf.node.operator, ()))
            rows = replace(rows, buckets=replace(rows.buckets, hot=hot))
        return ExchangeWriter(
            port=leaf.number,
            rows=rows,
            partitions=self._partitions(leaf.node),
            local=spec if combines and isinstance(spec, LocalPhase) else None,
            summary=leaf.port.summary,
            timed=leaf.port.timed,
            in_place=in_place,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renamed:
    """Chooses rows, and columns by place, and names these for ``then``."""

    places: tuple[int, ...]
    names: tuple[str, ...]
    then: BatchMap
    marked: MarkedRows | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chosen = batches if self.marked is None else map(self.marked.of, batches)
        return self.then(
            pa.RecordBatch.from_arrays([batch.column(p) for p in self.places], names=list(self.names))
            for batch in chosen
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windowed:
    """Gives ``then`` the columns ``kept`` of batches, the last ``hidden`` of them behind their windows, as
    ``names``; windows are cut by the ``time``-th of them."""

    windows: AttachedWindows
    kept: tuple[int, ...]
    hidden: int
    time: int
    names: tuple[str, ...]
    then: BatchMap

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.then(map(self._named, self.windows.attached(map(self._chosen, batches), self.time)))

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = [f"c{place}" for place in range(len(self.kept))]
        return pa.RecordBatch.from_arrays([batch.column(place) for place in self.kept], names=names)

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns, width = batch.columns, len(self.kept)
        visible = width - self.hidden
        ordered = [*columns[:visible], *columns[width:], *columns[visible:width]]
        return pa.RecordBatch.from_arrays(ordered, names=list(self.names))


def _places(node: g.ExecNode) -> dict[str, int]:
    """Where the columns of its frame stand."""
    return {name: place for place, name in enumerate((*node.columns, *node.hidden))}


def _marked(below: g.ExecNode, marked: g.Marked | None) -> MarkedRows | None:
    """Which of the rows of ``below`` are meant, by the places of their columns."""
    if marked is None:
        return None
    places = _places(below)
    return MarkedRows(kind=places[KIND_COLUMN], mark=places[marked.column], bits=marked.bits)


def _marked_text(marked: g.Marked) -> str:
    whole = f"{quote(KIND_COLUMN)} IN ({int(RowKind.INSERT)}, {int(RowKind.DELETE)})"
    return f"{whole} OR ({quote(marked.column)} & {marked.bits}) <> 0"


def _shape(below: g.ExecNode, columns: tuple[str, ...], marked: g.Marked | None, port: g.Port) -> PortRows:
    """How the rows of ``below`` look to the kernel."""
    places = _places(below)
    wanted = (*zip(columns, port.columns, strict=True), *((h, h) for h in port.hidden))
    chosen = tuple((places[name], kernel_name) for name, kernel_name in wanted)
    marks = _marked(below, marked)
    return PortRows(columns=chosen, keys=port.keys, marked=marks, buckets=port.buckets)


def _stage(
    node: g.AssignWatermark,
    below: g.ExecNode,
    columns: tuple[str, ...],
    handover: Handover | None,
    then: BatchMap | None = None,
) -> WatermarkStage:
    """The stage over batches of ``below``, whose ``columns`` are those of the node, then its mark."""
    places = _places(below)
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
