"""A batch plan as one Spark query: batch mode is plain Spark SQL with its adaptive execution.

Every operator of the plan is one piece of the query. A piece is text (``Relation``), or a frame where SQL
cannot say it; it has its node's field names. The same expressions and aggregates as in streaming: where an
aggregate has no Spark translation (it depends on arrival order), the streaming kernel runs on the whole input
instead, so both modes give one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import NamedTable
from tidemill.errors import InternalError
from tidemill.files.fence import OPEN, Fence
from tidemill.functions.literals import literal_sql
from tidemill.functions.values import marked, unmarked
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.arrival import ordered_inputs, runs_in_kernel
from tidemill.physical.batch.slices import Slices, by_slices
from tidemill.plan.constants import FEW_ROWS
from tidemill.plan.expressions import SortKey
from tidemill.plan.nodes import SetKind
from tidemill.runtime.compile.generators import (
    ROWS_COLUMN,
    expand_generator,
    rows_generator,
    unnest_generator,
)
from tidemill.runtime.graph import UserColumn
from tidemill.runtime.spark.batch_frames.aggregate import aggregated
from tidemill.runtime.spark.batch_frames.existence import existence, with_existence
from tidemill.runtime.spark.batch_frames.expand import unpivoted
from tidemill.runtime.spark.batch_frames.join import joined, not_in, unsent
from tidemill.runtime.spark.batch_frames.kernel import kernel_frame
from tidemill.runtime.spark.batch_frames.lookup import lookup_frame
from tidemill.runtime.spark.batch_frames.match import match_frame
from tidemill.runtime.spark.batch_frames.over import over_rows, ranking, sort_texts
from tidemill.runtime.spark.batch_frames.relation import (
    Relation,
    Views,
    aliased,
    combined,
    materialized,
    united,
)
from tidemill.runtime.spark.batch_frames.sharing import Sharing
from tidemill.runtime.spark.batch_frames.slices import aggregated_by_slices
from tidemill.runtime.spark.batch_frames.stopping import makes_many, stoppable
from tidemill.runtime.spark.batch_frames.temporal import temporal_frame
from tidemill.runtime.spark.batch_frames.values_table import values_table
from tidemill.runtime.spark.batch_frames.windows import windowed
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.user_columns import expression, selected
from tidemill.types.logical import Field, LogicalType
from tidemill.types.physical import quote, spark_schema
from tidemill.types.values import has_floats


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table's rows as they come, and the texts of the node's fields over columns of their names."""

    rows: DataFrame | NamedTable
    texts: tuple[str, ...]


ScanRows = Callable[[b.TableSourceScan, bool], TableRows]
GroupedRows = Callable[[b.Aggregate], tuple[b.Aggregate, DataFrame] | None]
"""What an aggregation is over parts that its table has made, and these; None where it has to read rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrames:
    """``scan(node, sequenced)`` reads a table now; ``given`` are registered DataFrames.

    ``sequenced`` pieces carry ``$seq``, which ``physical.batch.arrival`` asks for. ``sharing``: which nodes
    are one. ``quick``: the job may fail without need and is run again then (``decimal_sums``, ``join``).
    ``sends``: sides of joins may be sent to every task. ``fence``: where links among files lead.
    """

    views: Views
    scan: ScanRows
    grouped: GroupedRows
    given: Mapping[str, DataFrame]
    zone: str
    sharing: Sharing
    quick: bool = False
    sends: bool = True
    fence: Fence = OPEN
    _made: dict[tuple[str, bool], Relation] = field(default_factory=dict)

    def frame(self, node: p.PhysicalNode, sequenced: bool = False) -> DataFrame:
        """The lazy frame of ``node``: its fields, then ``$seq`` if asked for."""
        return self.rows(node, sequenced).frame()

    def rows(self, node: p.PhysicalNode, sequenced: bool = False) -> Relation:
        """As ``frame``. Equal nodes are one piece; what is more than a view's columns is analysed once."""
        key = self.sharing.key(node), sequenced
        made = self._made.get(key)
        if made is None:
            found = self.make(node, sequenced)
            names = _names(node.fields, sequenced)
            if self.sharing.keeps(node):
                found = materialized(found.frame() if isinstance(found, Relation) else found)
            made = found if isinstance(found, Relation) else self.views.of(found, names)
            if self.sharing.readers(node) > 1 and not isinstance(node, b.TableSourceScan):
                made = made.view()
            self._made[key] = made
        return made

    @singledispatchmethod
    def make(self, node: p.PhysicalNode, sequenced: bool = False) -> Relation | DataFrame:
        """What ``rows`` gives, by the kind of node."""
        raise InternalError(f"no frame for {type(node).__name__}")

    def translator(self, node: p.PhysicalNode) -> Translator:
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    @make.register
    def _(self, node: b.TableSourceScan, sequenced: bool = False) -> Relation:
        found, names = self.scan(node, sequenced), _names(node.fields, sequenced)
        hidden = [SEQUENCE_COLUMN] * sequenced
        if isinstance(found.rows, NamedTable):
            read = self.views.named(found.rows, names)
        else:
            read = self.views.of(found.rows, (*node.columns, *hidden)).renamed(names)
        texts = (*found.texts, *map(quote, hidden))
        return read if texts == tuple(map(quote, names)) else read.select(aliased(texts, names), names)

    @make.register
    def _(self, node: p.DataFrameScan, sequenced: bool = False) -> DataFrame:
        frame = self.given[node.key].toDF(*(f.name for f in node.fields))
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: p.Values, sequenced: bool = False) -> Relation | DataFrame:
        """Few rows are a part of the query's text; others would be read again with each query around them."""
        if not node.rows:
            frame = self.views.spark.createDataFrame([], spark_schema(node.fields))
            return _with_sequence(frame.coalesce(1)) if sequenced else frame
        if len(node.rows) > FEW_ROWS:
            known = values_table(node)
            if known is not None:
                frame = self.views.spark.createDataFrame(known, spark_schema(node.fields))
                return _with_sequence(frame.coalesce(1)) if sequenced else frame
        rows = ", ".join(
            "(" + ", ".join(literal_sql(v.value, v.type) for v in row) + ")" for row in node.rows
        )
        names = tuple(f.name for f in node.fields)
        text = f"SELECT * FROM VALUES {rows} AS v({', '.join(map(quote, names))})"
        if len(node.rows) <= FEW_ROWS and not sequenced:
            return Relation(self.views, f"({text})", names, depth=1)
        frame = self.views.spark.sql(text)
        return _with_sequence(frame.coalesce(1)) if sequenced else frame

    @make.register
    def _(self, node: p.Calc, sequenced: bool = False) -> Relation | DataFrame:
        return self._calculated(node, self.rows(node.input, sequenced), sequenced)

    def _calculated(self, node: p.Calc, below: Relation, sequenced: bool) -> Relation | DataFrame:
        translator, names = self.translator(node.input), _names(node.fields, sequenced)
        where = "" if node.condition is None else f"WHERE {translator.sql(node.condition)}"
        made = [expression(e, translator) for e in node.projections]
        texts = [e for e in made if isinstance(e, str)]
        if len(texts) == len(made):
            return below.select(aliased([*texts, *_sequence(sequenced)], names), names, where)
        frame = below.select(list(map(quote, below.columns)), below.columns, where).frame()
        return selected(frame, made, [f.name for f in node.fields], [SEQUENCE_COLUMN] * sequenced)

    @make.register
    def _(self, node: p.Expand, sequenced: bool = False) -> Relation:
        below, translator = self.rows(node.input, sequenced), self.translator(node.input)
        found = unpivoted(node, below, translator, sequenced)
        if found is not None:
            return found
        generator = expand_generator(node.projections, node.fields, translator)
        return self._generated(below, [generator], node.fields, sequenced)

    def _generated(
        self, below: Relation, texts: list[str], fields: tuple[Field, ...], sequenced: bool
    ) -> Relation:
        """``texts``, of which one gives several columns, are the fields; ``$seq`` goes behind them."""
        names = tuple(f.name for f in fields)
        made = below.select([*_sequence(sequenced), *texts], (*[SEQUENCE_COLUMN] * sequenced, *names))
        if not sequenced:
            return made
        return made.select([*map(quote, names), *_sequence(True)], _names(fields, True))

    @make.register
    def _(self, node: b.Aggregate, sequenced: bool = False) -> Relation | DataFrame:
        form = by_slices(node)
        if form is not None:
            made = aggregated_by_slices(form, self._in_slices(form), self.zone)
            return _with_sequence(made.frame()) if sequenced else made
        parts = self.grouped(node) if self.quick else None
        if parts is not None:
            node, rows = parts
            below = self.views.of(rows, tuple(f.name for f in node.input.fields))
        else:
            below = self.rows(node.input, *ordered_inputs(node, sequenced))
        if runs_in_kernel(node):
            found: Relation | DataFrame = kernel_frame(node, below.frame())
        else:
            found = aggregated(node, below, self.zone, self.quick)
        return _with_sequence(_frame(found)) if sequenced else found

    def _in_slices(self, form: Slices) -> Relation:
        """What ``form`` is over, its rows in windows that are slices; it is read more than once."""
        fields = form.function.fields
        rows: Relation | DataFrame = windowed(form.as_windows, self.frame(form.function.input), fields, [])
        for node in form.calcs:
            rows = self._calculated(node, self._relation(rows, node.input.fields), False)
        fields = (form.calcs[-1] if form.calcs else form.function).fields
        if not self.sharing.is_stable(form.node.input):
            rows = materialized(_frame(rows))
        return self._relation(rows, fields)

    def _relation(self, made: Relation | DataFrame, fields: tuple[Field, ...]) -> Relation:
        return made if isinstance(made, Relation) else self.views.of(made, _names(fields, False))

    @make.register
    def _(self, node: p.Sort, sequenced: bool = False) -> Relation:
        return self.rows(node.input, sequenced).renamed(
            _names(node.fields, sequenced), _order_by(node.order, node.fields)
        )

    @make.register
    def _(self, node: p.SortLimit, sequenced: bool = False) -> Relation:
        parts = [_order_by(node.order, node.fields)]
        if node.fetch is not None:
            parts.append(f"LIMIT {node.fetch}")
        if node.offset:
            parts.append(f"OFFSET {node.offset}")
        below = self.rows(node.input, sequenced)
        return below.renamed(_names(node.fields, sequenced), " ".join(parts).strip())

    @make.register
    def _(self, node: b.OverAggregate, sequenced: bool = False) -> Relation | DataFrame:
        below = self.rows(node.input, *ordered_inputs(node, sequenced))
        made = over_rows(node, below, self.zone, self.quick)
        names = _names(node.fields, sequenced)
        if isinstance(made, DataFrame):
            return made.selectExpr(*map(quote, names))
        return made if made.columns == names else made.select(list(map(quote, names)), names)

    @make.register
    def _(self, node: p.Match, sequenced: bool = False) -> DataFrame:
        frame = match_frame(node, self.frame(node.input, *ordered_inputs(node, sequenced)), self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.Rank, sequenced: bool = False) -> Relation:
        below = self.rows(node.input, sequenced)
        inputs, names = node.input.fields, _names(node.fields, sequenced)
        rank = quote(node.fields[-1].name)
        ranked = below.with_columns(
            [f"{ranking(node.call, inputs, below, False)} AS {rank}"], (node.fields[-1].name,)
        )
        return ranked.select(
            list(map(quote, names)), names, f"WHERE {rank} BETWEEN {node.start} AND {node.end}"
        )

    @make.register
    def _(self, node: b.Unnest, sequenced: bool = False) -> Relation:
        generator = unnest_generator(
            node.collection,
            node.fields[len(node.input.fields) :],
            node.outer,
            node.ordinality,
            node.condition,
            self.translator(node.input),
        )
        below = self.rows(node.input, sequenced)
        if makes_many(node.input):
            below = stoppable(below)
        return self._generated(below, [*_quoted(node.input.fields), generator], node.fields, sequenced)

    @make.register
    def _(self, node: b.TableFunction, sequenced: bool = False) -> DataFrame:
        args = tuple(map(self.translator(node.input).sql, node.args))
        generated = node.fields[len(node.input.fields) :]
        generator = rows_generator(quote(ROWS_COLUMN), generated, node.outer)
        kept = (*_quoted(node.input.fields), *_sequence(sequenced))
        frame = self.frame(node.input, sequenced)
        frame = selected(frame, [UserColumn(node.function, args)], [ROWS_COLUMN], frame.columns)
        frame = frame.selectExpr(*kept, generator)
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Join, sequenced: bool = False) -> Relation | DataFrame:
        node = node if self.sends else unsent(node)
        mark = None if sequenced else existence(node)
        if mark is not None:
            return with_existence(node, mark, self.rows(node.left), self.rows(mark.members), self.zone)
        left, right = map(self.rows, node.inputs, ordered_inputs(node, sequenced))
        if node.null_aware:
            made = not_in(node, left, right, self.zone, self.quick)
        else:
            made = joined(node, left, right, self.zone)
        return _with_sequence(made.frame()) if sequenced else made

    @make.register
    def _(self, node: b.TemporalJoin, sequenced: bool = False) -> DataFrame:
        left, right = map(self.frame, node.inputs, ordered_inputs(node, sequenced))
        frame = temporal_frame(node, left, right, self.zone)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: b.LookupJoin, sequenced: bool = False) -> DataFrame:
        source = self.frame(node.input, *ordered_inputs(node, sequenced))
        frame = lookup_frame(node, source, self.zone, self.fence)
        return _with_sequence(frame) if sequenced else frame

    @make.register
    def _(self, node: p.Union, sequenced: bool = False) -> Relation:
        names = _names(node.fields, sequenced)
        return united([self.rows(x, sequenced) for x in self._branches(node)], names)

    def _branches(self, union: p.Union) -> list[p.PhysicalNode]:
        """The inputs of a union and of the unions in it, in order. A union that has other readers, too, is a
        frame of its own."""
        found: list[p.PhysicalNode] = []
        waiting: list[p.PhysicalNode] = [union]
        while waiting:
            node = waiting.pop()
            if isinstance(node, p.Union) and (node is union or self.sharing.readers(node) == 1):
                waiting += reversed(node.branches)
            else:
                found.append(node)
        return found

    @make.register
    def _(self, node: b.CountedSets, sequenced: bool = False) -> Relation | DataFrame:
        names = _names(node.fields, False)
        left, right = (_rewritten(self.rows(s).renamed(names), node.fields, marked) for s in node.inputs)
        made = _rewritten(combined([left, right], _COUNTED[node.kind]), node.fields, unmarked)
        return _with_sequence(made.frame()) if sequenced else made

    @make.register
    def _(self, node: b.WindowTableFunction, sequenced: bool = False) -> DataFrame:
        frame = windowed(node.window, self.frame(node.input, sequenced), node.fields, _sequence(sequenced))
        return frame.selectExpr(*_quoted(node.fields), *_sequence(sequenced))

    @make.register
    def _(self, node: b.Sink, sequenced: bool = False) -> Relation:
        """The rows to be written, by the sink's names; the sink itself is the job's last step."""
        return self.rows(node.input, sequenced).renamed(_names(node.fields, sequenced))


_COUNTED = {SetKind.INTERSECT: "INTERSECT ALL", SetKind.EXCEPT: "EXCEPT ALL"}


def _rewritten(
    rows: Relation, fields: tuple[Field, ...], each: Callable[[str, LogicalType], str]
) -> Relation:
    """``each`` over the columns that hold floats; as it is where there are none."""
    if not any(has_floats(f.type) for f in fields):
        return rows
    return rows.select([f"{each(quote(f.name), f.type)} AS {quote(f.name)}" for f in fields], rows.columns)


def _order_by(order: tuple[SortKey, ...], fields: tuple[Field, ...]) -> str:
    texts = [text for key in order for text in sort_texts(key, fields)]
    return f"ORDER BY {', '.join(texts)}" if texts else ""


def _names(fields: tuple[Field, ...], sequenced: bool) -> tuple[str, ...]:
    return (*(f.name for f in fields), *[SEQUENCE_COLUMN] * sequenced)


def _quoted(fields: tuple[Field, ...]) -> list[str]:
    return [quote(f.name) for f in fields]


def _sequence(sequenced: bool) -> list[str]:
    return [quote(SEQUENCE_COLUMN)] * sequenced


def _frame(made: Relation | DataFrame) -> DataFrame:
    return made.frame() if isinstance(made, Relation) else made


def _with_sequence(frame: DataFrame) -> DataFrame:
    return frame.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
