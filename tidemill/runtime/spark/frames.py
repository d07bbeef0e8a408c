"""One epoch's lazy Spark frames from the exec graph.

Each exec node becomes a frame once per epoch; a node that several parents share is the same frame.
Keyed operators are an exchange by key group (the top bits of the key hash) and a ``mapInArrow``:
the partition of a key is a function of its hash and the job's parallelism only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatchmethod

from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import Offset, Source
from tidemill.errors import InternalError
from tidemill.operators.api import HASH_COLUMN
from tidemill.runtime import graph as g
from tidemill.runtime.spark.kernel import PORT_COLUMN, KernelTask, PortLayout, Report
from tidemill.types.physical import quote

KEY_GROUP_BITS = 7
KEY_GROUPS = 1 << KEY_GROUP_BITS
"""Upper bound of a job's parallelism, as Flink's maximum parallelism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFrames:
    """Everything the frames of one epoch depend on; ``ranges``: (start, end] per source id."""

    spark: SparkSession
    sources: dict[str, Source]
    ranges: dict[str, tuple[Offset | None, Offset]]
    state_root: str
    manifests: dict[str, dict[int, str]]
    epoch: int
    time: int
    parallelism: int
    report: Accumulator[Report]
    _made: dict[int, DataFrame] = field(default_factory=dict)

    def frame(self, node: g.ExecNode) -> DataFrame:
        """The lazy frame of ``node``: its columns, then its hidden columns."""
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._make(node)
        return made

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
        return frame.selectExpr(*_named(node.expressions, node.columns), *map(quote, node.hidden))

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
    def _(self, node: g.Keyed) -> DataFrame:
        layouts = _layouts(node)
        exchanged: DataFrame | None = None
        for number, port in enumerate(node.ports):
            part = self.frame(port.input).selectExpr(*_exchange_columns(node, layouts, number))
            exchanged = part if exchanged is None else exchanged.unionAll(part)
        if exchanged is None:
            raise InternalError("a keyed operator without inputs")
        partitions = 1 if node.single else self.parallelism
        target = F.expr(
            f"CAST(shiftrightunsigned({quote(HASH_COLUMN)}, {64 - KEY_GROUP_BITS}) * {partitions}"
            f" DIV {KEY_GROUPS} AS INT)"
        )
        task = KernelTask(
            operator=node.operator,
            spec=node.spec,
            state_root=self.state_root,
            base=self.manifests.get(node.operator, {}),
            epoch=self.epoch,
            time=self.time,
            ports=layouts,
            report=self.report,
        )
        return exchanged.repartitionById(partitions, target).mapInArrow(task, node.schema)


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
    return columns


def _layouts(node: g.Keyed) -> tuple[PortLayout, ...]:
    """Ports of one operator share the exchanged row: port n's column i travels as ``$n.i``."""
    layouts = []
    for number, port in enumerate(node.ports):
        hidden = port.input.hidden
        carried = [c if len(node.ports) == 1 else f"${number}.{i}" for i, c in enumerate(port.columns)]
        layouts.append(
            PortLayout(
                carried=(*carried, *hidden, HASH_COLUMN), columns=(*port.columns, *hidden, HASH_COLUMN)
            )
        )
    return tuple(layouts)


def _exchange_columns(node: g.Keyed, layouts: tuple[PortLayout, ...], number: int) -> list[str]:
    """The select list of one port: own columns, NULLs for the other ports', kind, sequence, hash."""
    columns: list[str] = []
    for other, (port, layout) in enumerate(zip(node.ports, layouts, strict=True)):
        for position, (expression, kind) in enumerate(zip(port.expressions, port.types, strict=True)):
            value = expression if other == number else f"CAST(NULL AS {kind})"
            columns.append(f"{value} AS {quote(layout.carried[position])}")
    hidden = node.ports[number].input.hidden
    if any(p.input.has_kind for p in node.ports):
        present = KIND_COLUMN in hidden
        columns.append(quote(KIND_COLUMN) if present else f"CAST(0 AS TINYINT) AS {quote(KIND_COLUMN)}")
    if any(p.input.sequenced for p in node.ports):
        present = SEQUENCE_COLUMN in hidden
        columns.append(quote(SEQUENCE_COLUMN) if present else f"0L AS {quote(SEQUENCE_COLUMN)}")
    columns.append(f"{node.ports[number].hash} AS {quote(HASH_COLUMN)}")
    if len(node.ports) > 1:
        columns.append(f"CAST({number} AS TINYINT) AS {quote(PORT_COLUMN)}")
    return columns
