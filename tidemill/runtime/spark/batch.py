"""A bound logical plan as one Spark DataFrame: batch mode is plain Spark SQL with its adaptive execution.

Every frame has the node's field names. The same expressions and aggregates as in streaming: where an
aggregate has no Spark translation (it depends on arrival order), the streaming kernel runs on the
whole input instead, so both modes give one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce, singledispatchmethod

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.functions.literals import literal_sql
from tidemill.physical.ranks import lowered, top_n
from tidemill.plan import nodes as n
from tidemill.plan.unsupported_windows import window_not_run
from tidemill.runtime.compile.generators import (
    ROWS_COLUMN,
    expand_generator,
    rows_generator,
    unnest_generator,
)
from tidemill.runtime.graph import UserColumn
from tidemill.runtime.spark.batch_aggregate import aggregate_frame, needs_order
from tidemill.runtime.spark.batch_join import join_frames
from tidemill.runtime.spark.batch_over import over_frame, sort_column
from tidemill.runtime.spark.batch_ties import has_ties, keeps_last
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.user_columns import expression, selected
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema

ScanFrame = Callable[[n.Scan, bool], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """``scan(node, sequenced)`` reads a table now; ``frames`` are registered DataFrames.

    ``sequenced`` frames carry ``$seq``; it is asked for only below what needs order: some aggregates, and
    ROW_NUMBER, whose ties go to the rows that came first.
    """

    spark: SparkSession
    scan: ScanFrame
    frames: Mapping[str, DataFrame]
    zone: str

    @singledispatchmethod
    def frame(self, node: n.LogicalNode, sequenced: bool = False) -> DataFrame:
        """The lazy frame of ``node``: its fields, then ``$seq`` if asked for."""
        raise NotSupportedError(f"{type(node).__name__} in batch mode is not supported yet")

    @frame.register
    def _(self, node: n.WindowTableFunction, sequenced: bool = False) -> DataFrame:
        raise window_not_run(node, "batch mode")

    def translator(self, node: n.LogicalNode) -> Translator:
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    @frame.register
    def _(self, node: n.Scan, sequenced: bool = False) -> DataFrame:
        return self.scan(node, sequenced)

    @frame.register
    def _(self, node: n.FrameScan, sequenced: bool = False) -> DataFrame:
        frame = self.frames[node.key].toDF(*(f.name for f in node.fields))
        return _with_sequence(frame) if sequenced else frame

    @frame.register
    def _(self, node: n.Values, sequenced: bool = False) -> DataFrame:
        names = [f.name for f in node.fields]
        if not node.rows:
            frame = self.spark.createDataFrame([], spark_schema(node.fields))
        else:
            rows = ", ".join(
                "(" + ", ".join(literal_sql(v.value, v.type) for v in row) + ")" for row in node.rows
            )
            frame = self.spark.sql(f"SELECT * FROM VALUES {rows} AS v({', '.join(map(quote, names))})")
        return _with_sequence(frame.coalesce(1)) if sequenced else frame

    @frame.register
    def _(self, node: n.Project, sequenced: bool = False) -> DataFrame:
        translator = self.translator(node.input)
        expressions = [expression(e, translator) for e in node.expressions]
        names = [f.name for f in node.fields]
        hidden = [SEQUENCE_COLUMN] * sequenced
        return selected(self.frame(node.input, sequenced), expressions, names, hidden)

    @frame.register
    def _(self, node: n.Filter, sequenced: bool = False) -> DataFrame:
        lower = lowered(node)
        if lower is not None and top_n(lower.input) is not None:
            return self.frame(lower, sequenced)
        found = top_n(node)
        if found is None:
            frame = self.frame(node.input, sequenced)
        else:
            frame = self._over(found.over, sequenced, keeps_last(found))
        condition = self.translator(node.input).sql(node.condition)
        return _named(frame.where(F.expr(condition)), node.fields, sequenced)

    @frame.register
    def _(self, node: n.Watermark, sequenced: bool = False) -> DataFrame:
        return _named(self.frame(node.input, sequenced), node.fields, sequenced)

    @frame.register
    def _(self, node: n.Expand, sequenced: bool = False) -> DataFrame:
        generator = expand_generator(node.projections, node.fields, self.translator(node.input))
        return (
            self.frame(node.input, sequenced)
            .selectExpr(*_sequence(sequenced), generator)
            .selectExpr(*_quoted(node.fields), *_sequence(sequenced))
        )

    @frame.register
    def _(self, node: n.Aggregate, sequenced: bool = False) -> DataFrame:
        frame = aggregate_frame(node, self.frame(node.input, needs_order(node)), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @frame.register
    def _(self, node: n.SetOp, sequenced: bool = False) -> DataFrame:
        ordered = sequenced and node.kind is n.SetKind.UNION and node.all
        names = _names(node.fields, ordered)
        branches = [self.frame(b, ordered).toDF(*names) for b in node.branches]
        merged = reduce(_SET_OPERATIONS[(node.kind, node.all)], branches)
        if node.kind is n.SetKind.UNION and not node.all:
            merged = merged.distinct()
        return _with_sequence(merged) if sequenced and not ordered else merged

    @frame.register
    def _(self, node: n.Sort, sequenced: bool = False) -> DataFrame:
        frame = self.frame(node.input, sequenced)
        if node.keys:
            frame = frame.orderBy(*(sort_column(k, node.input.fields) for k in node.keys))
        if node.offset:
            frame = frame.offset(node.offset)
        if node.fetch is not None:
            frame = frame.limit(node.fetch)
        return _named(frame, node.fields, sequenced)

    @frame.register
    def _(self, node: n.Unnest, sequenced: bool = False) -> DataFrame:
        generator = unnest_generator(
            node.collection,
            node.fields[len(node.input.fields) :],
            node.outer,
            node.ordinality,
            self.translator(node.input),
        )
        kept = _quoted(node.input.fields)
        frame = self.frame(node.input, sequenced).selectExpr(*kept, *_sequence(sequenced), generator)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @frame.register
    def _(self, node: n.TableFunction, sequenced: bool = False) -> DataFrame:
        args = tuple(map(self.translator(node.input).sql, node.args))
        generated = node.fields[len(node.input.fields) :]
        generator = rows_generator(quote(ROWS_COLUMN), generated, node.outer)
        kept = (*_quoted(node.input.fields), *_sequence(sequenced))
        frame = self.frame(node.input, sequenced)
        frame = selected(frame, [UserColumn(node.function, args)], [ROWS_COLUMN], frame.columns)
        frame = frame.selectExpr(*kept, generator)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @frame.register
    def _(self, node: n.Join, sequenced: bool = False) -> DataFrame:
        frame = join_frames(node, self.frame(node.left), self.frame(node.right), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @frame.register
    def _(self, node: n.Over, sequenced: bool = False) -> DataFrame:
        return self._over(node, sequenced, False)

    def _over(self, node: n.Over, sequenced: bool, last_first: bool) -> DataFrame:
        ordered = sequenced or has_ties(node)
        frame = over_frame(node, self.frame(node.input, ordered), last_first=last_first)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))


_SET_OPERATIONS: dict[tuple[n.SetKind, bool], Callable[[DataFrame, DataFrame], DataFrame]] = {
    (n.SetKind.UNION, True): DataFrame.unionAll,
    (n.SetKind.UNION, False): DataFrame.unionAll,
    (n.SetKind.INTERSECT, True): DataFrame.intersectAll,
    (n.SetKind.INTERSECT, False): DataFrame.intersect,
    (n.SetKind.EXCEPT, True): DataFrame.exceptAll,
    (n.SetKind.EXCEPT, False): DataFrame.subtract,
}


def _names(fields: tuple[Field, ...], sequenced: bool) -> list[str]:
    return [f.name for f in fields] + [SEQUENCE_COLUMN] * sequenced


def _quoted(fields: tuple[Field, ...]) -> list[str]:
    return [quote(f.name) for f in fields]


def _sequence(sequenced: bool) -> list[str]:
    return [quote(SEQUENCE_COLUMN)] * sequenced


def _named(frame: DataFrame, fields: tuple[Field, ...], sequenced: bool) -> DataFrame:
    return frame.toDF(*_names(fields, sequenced))


def _with_sequence(frame: DataFrame) -> DataFrame:
    return frame.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
