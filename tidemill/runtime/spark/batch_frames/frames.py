"""A batch plan as one Spark DataFrame: batch mode is plain Spark SQL with its adaptive execution.

Every operator of the plan is one piece of the frame, every Step is part of the piece above it. A frame has
its node's field names. The same expressions and aggregates as in streaming: where an aggregate has no Spark
translation (it depends on arrival order), the streaming kernel runs on the whole input instead, so both
modes give one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import InternalError
from tidemill.functions.literals import literal_sql
from tidemill.functions.values import marked, unmarked
from tidemill.physical.batch import nodes as b
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.nodes import SetKind
from tidemill.runtime.compile.generators import (
    ROWS_COLUMN,
    expand_generator,
    rows_generator,
    unnest_generator,
)
from tidemill.runtime.graph import UserColumn
from tidemill.runtime.spark.batch_frames.aggregate import aggregate_frame, needs_order
from tidemill.runtime.spark.batch_frames.join import join_frames
from tidemill.runtime.spark.batch_frames.keeping import kept
from tidemill.runtime.spark.batch_frames.lookup import lookup_frame
from tidemill.runtime.spark.batch_frames.match import match_frame
from tidemill.runtime.spark.batch_frames.over import over_frame, sort_columns
from tidemill.runtime.spark.batch_frames.sharing import Sharing
from tidemill.runtime.spark.batch_frames.temporal import temporal_frame
from tidemill.runtime.spark.batch_frames.windows import windowed
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.unions import united
from tidemill.runtime.spark.user_columns import expression, selected
from tidemill.types.logical import Field, LogicalType
from tidemill.types.physical import quote, spark_schema
from tidemill.types.values import has_floats

ScanFrame = Callable[[b.TableSourceScan, bool], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrames:
    """``scan(node, sequenced)`` reads a table now; ``given`` are registered DataFrames.

    ``sequenced`` frames carry ``$seq``; it is asked for only below what needs order: some aggregates, and
    ROW_NUMBER, whose ties go to the rows that came first. ``sharing``: which nodes are one.
    """

    spark: SparkSession
    scan: ScanFrame
    given: Mapping[str, DataFrame]
    zone: str
    sharing: Sharing
    _made: dict[tuple[str, bool], DataFrame] = field(default_factory=dict)

    def frame(self, node: b.BatchNode, sequenced: bool = False) -> DataFrame:
        """The lazy frame of ``node``: its fields, then ``$seq`` if asked for. Equal nodes are one frame."""
        key = self.sharing.key(node), sequenced
        made = self._made.get(key)
        if made is None:
            made = self.make(node, sequenced)
            if self.sharing.keeps(node):
                made = kept(made)
            self._made[key] = made
        return made

    @singledispatchmethod
    def make(self, node: b.BatchNode, sequenced: bool = False) -> DataFrame:
        """What ``frame`` gives, by the kind of node."""
        raise InternalError(f"no frame for {type(node).__name__}")

    def translator(self, node: b.BatchNode) -> Translator:
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    @make.register
    def _(self, node: b.Step, sequenced: bool = False) -> DataFrame:
        raise InternalError(f"a Step ({node.title}) is part of the operator above it")

    @make.register
    def _(self, node: b.TableSourceScan, sequenced: bool = False) -> DataFrame:
        return self.scan(node, sequenced)

    @make.register
    def _(self, node: b.DataFrameScan, sequenced: bool = False) -> DataFrame:
        frame = self.given[node.key].toDF(*(f.name for f in node.fields))
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.Values, sequenced: bool = False) -> DataFrame:
        names = [f.name for f in node.fields]
        if not node.rows:
            frame = self.spark.createDataFrame([], spark_schema(node.fields))
        else:
            rows = ", ".join(
                "(" + ", ".join(literal_sql(v.value, v.type) for v in row) + ")" for row in node.rows
            )
            frame = self.spark.sql(f"SELECT * FROM VALUES {rows} AS v({', '.join(map(quote, names))})")
        return _with_sequence(frame.coalesce(1)) if sequenced else frame

    @make.register
    def _(self, node: b.Calc, sequenced: bool = False) -> DataFrame:
        translator = self.translator(node.source)
        frame = self.frame(node.source, sequenced)
        if node.condition is not None:
            frame = frame.where(F.expr(translator.sql(node.condition)))
        if _passes(node.projections, node.source):
            return _named(frame, node.fields, sequenced)
        expressions = [expression(e, translator) for e in node.projections]
        names = [f.name for f in node.fields]
        return selected(frame, expressions, names, [SEQUENCE_COLUMN] * sequenced)

    @make.register
    def _(self, node: b.Expand, sequenced: bool = False) -> DataFrame:
        generator = expand_generator(node.projections, node.fields, self.translator(node.source))
        return (
            self.frame(node.source, sequenced)
            .selectExpr(*_sequence(sequenced), generator)
            .selectExpr(*_quoted(node.fields), *_sequence(sequenced))
        )

    @make.register
    def _(self, node: b.Aggregate, sequenced: bool = False) -> DataFrame:
        frame = aggregate_frame(node, self.frame(node.source, needs_order(node)), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.Sort, sequenced: bool = False) -> DataFrame:
        frame = self.frame(node.source, sequenced)
        return frame.orderBy(*(c for k in node.order for c in sort_columns(k, node.source.fields)))

    @make.register
    def _(self, node: b.Limit, sequenced: bool = False) -> DataFrame:
        frame = self.frame(node.source, sequenced)
        if node.order:
            frame = frame.orderBy(*(c for k in node.order for c in sort_columns(k, node.source.fields)))
        if node.offset:
            frame = frame.offset(node.offset)
        if node.fetch is not None:
            frame = frame.limit(node.fetch)
        return _named(frame, node.fields, sequenced)

    @make.register
    def _(self, node: b.OverAggregate, sequenced: bool = False) -> DataFrame:
        ordered = sequenced or any(call.function == "ROW_NUMBER" for call in node.calls)
        frame = over_frame(
            node.calls, node.source.fields, node.fields, self.frame(node.source, ordered), node.last_first
        )
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Match, sequenced: bool = False) -> DataFrame:
        frame = match_frame(node, self.frame(node.source, True), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.Rank, sequenced: bool = False) -> DataFrame:
        frame = self.frame(node.source, sequenced)
        ranked = over_frame((node.call,), node.source.fields, node.fields, frame, False)
        rank = F.col(quote(node.fields[-1].name))
        kept = ranked.where(rank.between(node.start, node.end))
        return kept.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Unnest, sequenced: bool = False) -> DataFrame:
        generator = unnest_generator(
            node.collection,
            node.fields[len(node.source.fields) :],
            node.outer,
            node.ordinality,
            node.condition,
            self.translator(node.source),
        )
        kept = _quoted(node.source.fields)
        frame = self.frame(node.source, sequenced).selectExpr(*kept, *_sequence(sequenced), generator)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.TableFunction, sequenced: bool = False) -> DataFrame:
        args = tuple(map(self.translator(node.source).sql, node.args))
        generated = node.fields[len(node.source.fields) :]
        generator = rows_generator(quote(ROWS_COLUMN), generated, node.outer)
        kept = (*_quoted(node.source.fields), *_sequence(sequenced))
        frame = self.frame(node.source, sequenced)
        frame = selected(frame, [UserColumn(node.function, args)], [ROWS_COLUMN], frame.columns)
        frame = frame.selectExpr(*kept, generator)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Join, sequenced: bool = False) -> DataFrame:
        left, right = (self.frame(side) for side in node.sources)
        frame = join_frames(node, left, right, self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.TemporalJoin, sequenced: bool = False) -> DataFrame:
        left, right = node.sources
        frame = temporal_frame(node, self.frame(left), self.frame(right, True), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.LookupJoin, sequenced: bool = False) -> DataFrame:
        frame = lookup_frame(node, self.frame(node.source), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.Union, sequenced: bool = False) -> DataFrame:
        names = _names(node.fields, sequenced)
        return united([self.frame(x, sequenced).toDF(*names) for x in self._branches(node)])

    def _branches(self, union: b.Union) -> list[b.BatchNode]:
        """What a union and those in it read, in order; one that others read, too, is a frame of its own."""
        found: list[b.BatchNode] = []
        waiting: list[b.BatchNode] = [union]
        while waiting:
            node = waiting.pop()
            if isinstance(node, b.Union) and (node is union or self.sharing.readers(node) == 1):
                waiting += reversed(node.branches)
            else:
                found.append(node)
        return found

    @make.register
    def _(self, node: b.CountedSets, sequenced: bool = False) -> DataFrame:
        names = _names(node.fields, False)
        sides = (self.frame(side).toDF(*names) for side in node.inputs)
        left, right = (_rewritten(side, node.fields, marked) for side in sides)
        frame = _rewritten(_COUNTED[node.kind](left, right), node.fields, unmarked)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.WindowTableFunction, sequenced: bool = False) -> DataFrame:
        frame = windowed(node.window, self.frame(node.source, sequenced), node.fields, _sequence(sequenced))
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Sink, sequenced: bool = False) -> DataFrame:
        """The rows to be written; the sink itself is the job's last step."""
        return self.frame(node.source, sequenced)


_COUNTED: dict[SetKind, Callable[[DataFrame, DataFrame], DataFrame]] = {
    SetKind.INTERSECT: DataFrame.intersectAll,
    SetKind.EXCEPT: DataFrame.exceptAll,
}


def _rewritten(
    frame: DataFrame, fields: tuple[Field, ...], each: Callable[[str, LogicalType], str]
) -> DataFrame:
    """``each`` over the columns that hold floats; as it is where there are none."""
    if not any(has_floats(f.type) for f in fields):
        return frame
    return frame.selectExpr(*(f"{each(quote(f.name), f.type)} AS {quote(f.name)}" for f in fields))


def _passes(projections: tuple[Expr, ...], source: b.BatchNode) -> bool:
    """Whether the columns are the source's, by place."""
    columns = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(source.fields))
    return projections == columns


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
