"""The tables of a job of which nothing has run, and what a query must give for each.

Two families can be built:

- Records of a GROUP BY, slices of windows, open sessions: accumulators that a query can give. Columns that
  repeat other tables are compared with these.
- Rows that an operator keeps of its inputs (``operators.api.TakesRows``): the operator takes them in.

Of other operators no query tells what they would keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.changelog.watermarks import NONE
from tidemill.errors import NotSupportedError
from tidemill.files.storage import Storage
from tidemill.operators.aggregates.count import CountAccumulator
from tidemill.operators.aggregates.decimal_sum import DecimalSumAccumulator
from tidemill.operators.aggregates.float_sum import FloatSumAccumulator
from tidemill.operators.aggregates.min_max import ExtremeAccumulator, RetractableExtremeAccumulator
from tidemill.operators.aggregates.registry import ignores_distinct
from tidemill.operators.aggregates.sum import SumAccumulator
from tidemill.operators.api import TakesRows
from tidemill.operators.arrival import ArrivalSpec
from tidemill.operators.group_aggregate.shape import GroupShape
from tidemill.operators.last_arrived import LastArrivedSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.shared_values import SharedValuesSpec
from tidemill.operators.window.store.partial_aggregates import Accumulated
from tidemill.operators.window.store.sessions import SESSION
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.state_tables.intake import Intake
from tidemill.runtime.state_tables.invariants import OpenWindows
from tidemill.runtime.state_tables.naming import OperatorState, StateColumn, StoredTable, operators_of
from tidemill.runtime.state_tables.sessions import SessionRules
from tidemill.runtime.state_tables.writer import TableRules, Told
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.types.physical import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUILT = (
    CountAccumulator,
    SumAccumulator,
    FloatSumAccumulator,
    DecimalSumAccumulator,
    ExtremeAccumulator,
    RetractableExtremeAccumulator,
)
"""Accumulators whose columns a query can give."""
_STATELESS = (ArrivalSpec, LastArrivedSpec)
_PROCTIME = "*PROCTIME*"
"""What types of columns with the time of arrival have in them."""
_READ = ("key", "value", "payload", "", "weight")
"""The roles of columns that a query gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """``columns``: what a query gives. ``optional``: their stored names, where it need not. ``single``: its
    operator has one partition. ``computed``: columns that Spark computes from the given ones, by their stored
    names, as texts over ``references``."""

    operator: OperatorState
    table: StoredTable
    rules: TableRules
    columns: tuple[StateColumn, ...]
    optional: frozenset[str]
    single: bool
    computed: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a query must give."""
        return tuple(c.name for c in self.columns if c.stored not in self.optional)

    def completed(self, frame: DataFrame, stored: tuple[str, ...]) -> DataFrame:
        """``frame``, whose columns are the ``stored`` ones, with the computed columns behind them."""
        if not self.computed:
            return frame
        return frame.toDF(*(self.references.get(name, name) for name in stored)).selectExpr(
            "*", *(f"{text} AS {quote(name)}" for name, text in self.computed.items())
        )


def new_tables(
    target: Storage, identity: JobIdentity, nodes: Iterable[g.ExecNode], watermarks: Mapping[str, int]
) -> dict[str, NewTable]:
    """All tables of state that the job has, by name, in the order in which they must be written.
    ``watermarks``: how far the time of operators has come. NotSupportedError where an operator cannot be
    built."""
    keyed = {n.operator: n for n in nodes if isinstance(n, g.Keyed)}
    found: list[NewTable] = []
    for operator in operators_of(Savepoint(storage=target, identity=identity, commit=None)):
        node = keyed[operator.id]
        if isinstance(node.spec, _STATELESS):
            continue
        if operator.kind == "group-aggregate" and isinstance(node.spec, GroupShape):
            found += _aggregation(operator, node, node.spec)
        elif isinstance(node.spec, WindowAggregateSpec):
            found += _windows(operator, node, node.spec, watermarks.get(operator.id, NONE))
        elif isinstance(node.spec, SessionAggregateSpec):
            found += _sessions(operator, node, node.spec, watermarks.get(operator.id, NONE))
        else:
            kept = {c.name: c.type for c in identity.schema[operator.id].columns}
            found += _rows(operator, node, node.spec, kept)
    return {new.table.name: new for new in found}


# -- records of a GROUP BY ----------------------------------------------------------------------------------


def _aggregation(operator: OperatorState, node: g.Keyed, spec: GroupShape) -> Iterator[NewTable]:
    _check_aggregation(operator, node, spec, tuple(name for name, _ in spec.keys))
    layouts = {layout.name: layout for layout in spec.evolving}
    # Those of values come first: records are compared with them.
    for table in sorted(operator.tables, key=lambda t: t.stored == spec.layout.name):
        yield NewTable(
            operator=operator,
            table=table,
            rules=_rules(table, layouts[table.stored], spec),
            columns=tuple(c for c in table.columns if c.role in _READ),
            optional=_rests(spec),
            single=node.single,
        )


def _windows(
    operator: OperatorState, node: g.Keyed, spec: WindowAggregateSpec, watermark: int
) -> Iterator[NewTable]:
    """Tables by slice: of values first, as slices are compared with them."""
    pieces, values = spec.pieces, {layout.name: layout for layout in spec.evolving[1:]}
    text = f"State of {operator.name}, {operator.text}, cannot be built"
    plain = isinstance(pieces, Accumulated) and not (spec.retracts or isinstance(spec, SharedValuesSpec))
    if not plain or spec.trigger.repeats:
        raise NotSupportedError(f"{text}: it has more than accumulators and values of append-only rows.")
    if spec.attached:
        raise NotSupportedError(f"{text}: its rows come with their windows.")
    firsts = _firsts(operator, spec)
    if not spec.windows.whole and watermark == NONE:
        raise NotSupportedError(
            f"{text} without a watermark: its windows share rows with windows that have ended.",
            hint="Say how far event time has come in the history: SET 'tidemill.savepoint.watermark'.",
        )
    _check_aggregation(operator, node, spec.group, tuple(name for name, _ in spec.keys))
    windows = OpenWindows(windows=spec.windows, clock=spec.clock, watermark=watermark)
    told = _told_by_values(spec)
    for table in sorted(operator.tables, key=lambda t: t.stored == pieces.layout.name):
        required = tuple(c.stored for c in table.columns if c.required and c.stored != WEIGHT)
        if table.stored in values:
            layout = values[table.stored]
            own = tuple(f.name for f in (*layout.values, *layout.columns))
            rules = TableRules(layout=layout, adds=True, required=(*own, *required), windows=windows)
        else:
            rules = TableRules(
                layout=pieces.layout,
                adds=True,
                required=required,
                counts=True,
                windows=windows,
                none=frozenset(name for name in told if name.startswith("COUNT(")),
                sets=tuple(layout for layout in values.values() if layout.additive),
                firsts=firsts,
                told=(),
            )
        yield NewTable(
            operator=operator,
            table=table,
            rules=rules,
            columns=tuple(c for c in table.columns if c.role in _READ and c.stored not in told),
            optional=_rests(spec.group) | {WEIGHT},
            single=node.single,
        )


def _told_by_values(spec: WindowAggregateSpec) -> frozenset[str]:
    """The columns of slices that follow from the tables of values: they hold nothing where windows count the
    values of their slices, and else the values that a slice has first."""
    marks = {view.column for view in spec.distinct.views.values()} if spec.distinct else set()
    told = (a for a in spec.group.aggregates if a.spec.filter in marks)
    return frozenset(f.name for a in told for accumulator in a.accumulators for f in accumulator.fields)


def _firsts(operator: OperatorState, spec: WindowAggregateSpec) -> dict[str, Layout]:
    """By columns of slices that count values the tables that have these with their first slices."""
    firsts = spec.firsts
    if firsts is None:
        return {}
    views = {view.column: view for view in firsts.views.values()}
    found: dict[str, Layout] = {}
    for aggregate in spec.group.aggregates:
        for accumulator in aggregate.accumulators if aggregate.spec.filter in views else ():
            if not isinstance(accumulator, CountAccumulator):
                raise NotSupportedError(
                    f"State of {operator.name}, {operator.text}, cannot be built: CUMULATE keeps more of "
                    "DISTINCT values than their number."
                )
            layout = views[aggregate.spec.filter or ""].layout(firsts.fields)
            found |= {f.name: layout for f in accumulator.fields}
    return found


def _sessions(
    operator: OperatorState, node: g.Keyed, spec: SessionAggregateSpec, watermark: int
) -> Iterator[NewTable]:
    """The open sessions, or the rows of each: their other tables follow from these."""
    layout, keys = spec.tables.counted, tuple(name for name, _ in spec.keys)
    if spec.trigger.repeats or spec.bucket or not spec.aggregates_rows_that_stay:
        raise NotSupportedError(
            f"State of {operator.name}, {operator.text}, cannot be built: it has more than accumulators and "
            "values of append-only rows."
        )
    if layout.additive:
        _check_keys(operator, node, keys)
    else:
        _check_aggregation(operator, node, spec.group, keys)
    (table,) = operator.tables
    yield NewTable(
        operator=operator,
        table=table,
        rules=TableRules(
            layout=layout,
            adds=True,
            required=tuple(c.stored for c in table.columns if c.required and c.stored != WEIGHT),
            counts=True,
            sessions=SessionRules(keys=layout.keys, gap=spec.gap, watermark=watermark),
        ),
        columns=tuple(c for c in table.columns if c.role in _READ and c.stored != SESSION),
        optional=_rests(spec.group) | {WEIGHT},
        single=node.single,
    )


def _rests(spec: GroupShape) -> frozenset[str]:
    """The columns that hold what another cannot, 0 if nobody gives them."""
    return frozenset(f.name for a in spec.accumulators.values() for f in a.fields[1:])


def _check_keys(operator: OperatorState, node: g.Keyed, keys: tuple[str, ...]) -> None:
    if any(port.keys != keys or port.buckets for port in node.ports):
        raise NotSupportedError(
            f"State of {operator.name} cannot be built: its rows are not sent by the hash of all their keys."
        )


def _check_aggregation(
    operator: OperatorState, node: g.Keyed, spec: GroupShape, keys: tuple[str, ...]
) -> None:
    _check_keys(operator, node, keys)
    for aggregate in spec.aggregates:
        named = aggregate.spec.canonical(aggregate.spec.function)
        apart = aggregate.spec.distinct and not ignores_distinct(aggregate.spec)
        kinds = (CountAccumulator,) if apart else _BUILT
        if not all(isinstance(a, kinds) for a in aggregate.accumulators):
            raise NotSupportedError(
                f"State of {operator.name} cannot be built: '{named}' has state of its own."
            )
    if any(view.filters != (None,) for view in spec.views):
        raise NotSupportedError(f"State of {operator.name} cannot be built: a DISTINCT call has a FILTER.")


def _rules(table: StoredTable, layout: Layout, spec: GroupShape) -> TableRules:
    types = tuple(c.stored for c in table.columns if c.required)
    if layout.name == spec.layout.name:
        followers = tuple(other for other in spec.evolving if other.name != layout.name)
        return TableRules(
            layout=layout,
            adds=True,
            required=types,
            counts=True,
            followers=followers,
            told=tuple(_told(spec)),
        )
    nulls = any(view.nulls for view in spec.views if view.layout.name == layout.name)
    values = () if nulls else tuple(f.name for f in layout.values)
    times = next((f.name for f in layout.columns), "")
    return TableRules(layout=layout, adds=True, required=(*values, *types), times=times)


def _told(spec: GroupShape) -> Iterator[Told]:
    """The columns of records that repeat what tables of values hold."""
    views = {view.key: view for view in spec.views}
    for aggregate in spec.aggregates:
        view = views.get(aggregate.spec.values_key) if aggregate.spec.distinct else None
        for accumulator in aggregate.accumulators:
            if isinstance(accumulator, RetractableExtremeAccumulator):
                how = "min" if accumulator.extreme.least else "max"
                yield Told(column=accumulator.name, layout=accumulator.layout, how=how)
            elif view is not None and not ignores_distinct(aggregate.spec):
                yield Told(column=accumulator.name, layout=view.layout, how="count")


# -- rows of inputs -----------------------------------------------------------------------------------------


def _rows(
    operator: OperatorState, node: g.Keyed, spec: object, kept: Mapping[str, str]
) -> Iterator[NewTable]:
    """``kept``: the columns of the inputs that state has, with their types."""
    tables = {table.stored: table for table in operator.tables}
    layouts = spec.kept_rows.layouts if isinstance(spec, TakesRows) else ()
    if not isinstance(spec, TakesRows) or [*tables] != [layout.name for layout in layouts]:
        raise NotSupportedError(
            f"State of {operator.name}, {operator.text}, cannot be built: only that of GROUP BY, windows, "
            "joins, deduplication, Top-N and OVER can."
        )
    if len(node.ports) != len(layouts) or any(port.buckets for port in node.ports):
        raise NotSupportedError(
            f"State of {operator.name}, {operator.text}, cannot be built: it has more than the rows of its "
            "inputs."
        )
    for number, (port, layout) in enumerate(zip(node.ports, layouts, strict=True)):
        table, stored = tables[layout.name], {f.name for f in (*layout.identity, *layout.columns)}
        columns = tuple(c for c in port.columns if c in stored)
        computed = _computed(operator, port, [c for c in columns if c not in kept])
        intake = Intake(
            operator=spec,
            port=number,
            layout=layout,
            columns=columns,
            keys=port.keys,
            arrived=frozenset(c for c in columns if _PROCTIME in kept.get(c, "")),
        )
        given = [c for c in table.columns if c.stored in intake.given and c.stored not in computed]
        required = tuple(c.stored for c in given if c.required and c.stored not in intake.optional)
        yield NewTable(
            operator=operator,
            table=table,
            rules=TableRules(layout=layout, required=required, intake=intake),
            columns=tuple(given),
            optional=intake.optional,
            single=node.single,
            computed=computed,
            references=dict(zip(port.columns, port.references, strict=True)),
        )


def _computed(operator: OperatorState, port: g.Port, names: list[str]) -> dict[str, str]:
    """The columns ``names``, which the plan computes from other ones of the port, as Spark texts."""
    found: dict[str, str] = {}
    below = port.input
    texts = dict(zip(below.columns, below.expressions, strict=True)) if isinstance(below, g.Select) else {}
    unkept = [quote(c) for each in below.inputs for c in each.columns if c not in port.references]
    for name in names:
        text = texts.get(name)
        if not isinstance(text, str) or any(column in text for column in unkept):
            raise NotSupportedError(
                f"State of {operator.name}, {operator.text}, cannot be built: its condition computes with "
                "columns that are not in the state.",
                hint="Compute them in a subquery below the join.",
            )
        found[name] = text
    return found
