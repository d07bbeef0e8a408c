"""Which columns of a node's batches a step takes, by place, and under which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.connectors.api import BatchMap
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.runtime import graph as g
from tidemill.runtime.spark.exchange import MarkedRows, PortRows
from tidemill.runtime.spark.watermark_stage import Handover, WatermarkStage


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """Chooses rows, and columns by position, and names these for ``then``. A column without a position is the
    kind of rows that are all inserted."""

    positions: tuple[int | None, ...]
    names: tuple[str, ...]
    then: BatchMap
    marked: MarkedRows | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chosen = batches if self.marked is None else map(self.marked.of, batches)
        return self.then(
            pa.RecordBatch.from_arrays(
                [_inserted(batch.num_rows) if p is None else batch.column(p) for p in self.positions],
                names=list(self.names),
            )
            for batch in chosen
        )


def _inserted(rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(int(RowKind.INSERT), pa.int8()), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Gives ``then`` what ``first`` makes of batches, with columns called ``names``."""

    first: BatchMap
    names: tuple[str, ...]
    then: BatchMap

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.then(made.rename_columns(list(self.names)) for made in self.first(batches))


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
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


def column_positions(node: g.ExecNode) -> dict[str, int]:
    """Where the columns of its batches stand."""
    return {name: place for place, name in enumerate((*node.columns, *node.hidden))}


def marked_rows(below: g.ExecNode, marked: g.Marked | None) -> MarkedRows | None:
    """Which of the rows of ``below`` are meant, by the positions of their columns."""
    if marked is None:
        return None
    positions = column_positions(below)
    return MarkedRows(kind=positions[KIND_COLUMN], mark=positions[marked.column], bits=marked.bits)


def port_rows(below: g.ExecNode, columns: tuple[str, ...], marked: g.Marked | None, port: g.Port) -> PortRows:
    """How the rows of ``below`` look to the kernel."""
    positions = column_positions(below)
    wanted = (*zip(columns, port.columns, strict=True), *((h, h) for h in port.hidden))
    chosen = tuple((positions[name], kernel_name) for name, kernel_name in wanted)
    marks = marked_rows(below, marked)
    return PortRows(columns=chosen, keys=port.keys, marked=marks, buckets=port.buckets)


def watermark_stage(
    node: g.AssignWatermark,
    below: g.ExecNode,
    columns: tuple[str, ...],
    handover: Handover | None,
    then: BatchMap | None,
) -> WatermarkStage:
    """The stage over batches of ``below``, whose ``columns`` are those of the node, then its mark."""
    positions = column_positions(below)
    hidden = tuple(h for h in node.hidden if h != WATERMARK_COLUMN)
    kept = (*zip(columns, node.columns, strict=False), *((h, h) for h in hidden))
    return WatermarkStage(
        source=node.source,
        rowtime=positions[columns[node.columns.index(node.rowtime)]],
        mark=positions[columns[-1]],
        delay=node.delay,
        interval=node.interval,
        kept=tuple((positions[old], new) for old, new in kept),
        handover=handover,
        then=then,
    )
