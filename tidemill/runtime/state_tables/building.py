"""A savepoint of a job of which nothing has run: its state is made of rows, table by table.

Numbered, as they happen:

1. ``job.json`` claims the place.
2. Sources say how far they reach. The job begins behind that.
3. Tables are written, of an operator those of values first. Each is as an edit of a table without rows
   (``editing``). Records are compared with the values that are there.
4. ``savepoint.json`` is written: the savepoint is there. Before that it is absent.

Only aggregations without windows can be built: of other operators no query tells what they would keep.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.operators.aggregates.count import CountAccumulator
from tidemill.operators.aggregates.decimal_sum import DecimalSumAccumulator
from tidemill.operators.aggregates.float_sum import FloatSumAccumulator
from tidemill.operators.aggregates.min_max import ExtremeAccumulator, RetractableExtremeAccumulator
from tidemill.operators.aggregates.registry import ignores_distinct
from tidemill.operators.aggregates.sum import SumAccumulator
from tidemill.operators.group_aggregate.shape import GroupShape
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.epochs import EpochCommit, recorded
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import SOURCES, STATE, Savepoint, check_empty
from tidemill.runtime.state_tables.editing import Edit, claim, finish, staged
from tidemill.runtime.state_tables.naming import OperatorState, StateColumn, StoredTable, operators_of
from tidemill.runtime.state_tables.writer import Part, StateWriter, TableRules, Told
from tidemill.state.layout import Layout
from tidemill.state.slices import KEY_GROUPS, Slice, Slices, key_groups
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST = 1
_BUILT = (
    CountAccumulator,
    SumAccumulator,
    FloatSumAccumulator,
    DecimalSumAccumulator,
    ExtremeAccumulator,
    RetractableExtremeAccumulator,
)
"""Accumulators whose columns a query can give."""
_READ = ("key", "value", "payload", "", "weight")
"""The roles of columns that a query gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """``rests``: columns that hold what another cannot, 0 if nobody gives them. ``single``: its operator has
    one partition."""

    operator: OperatorState
    table: StoredTable
    rules: TableRules
    rests: frozenset[str]
    single: bool

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a query must give."""
        return tuple(c.name for c in self.columns if c.stored not in self.rests)

    @property
    def columns(self) -> tuple[StateColumn, ...]:
        """What a query gives."""
        return tuple(c for c in self.table.columns if c.role in _READ)


@dataclass(slots=True, kw_only=True)
class NewState:
    """``tables`` by name, in the order in which they must be written; ``now`` in milliseconds."""

    target: Storage
    identity: JobIdentity
    tables: Mapping[str, NewTable]
    parallelism: int
    now: int
    _slices: Slices = field(default_factory=dict)
    _offsets: dict[str, Offset] = field(default_factory=dict)
    _begun: bool = False

    def begin(self) -> None:
        check_empty(self.target)
        claim(self.target, self.identity)  # 1
        self._begun = True

    def read_to_the_end(self, sources: Mapping[str, Source], spark: SparkSession) -> None:
        """What is there now counts as read."""
        for key, source in sources.items():  # 2
            source.record_in(self.target.below(SOURCES).below(key))
            source.search_with(spark)
            self._offsets[key] = source.next_offset(None, ReadLimit())

    def put(
        self,
        name: str,
        columns: tuple[str, ...],
        run: Callable[[Callable[[DataFrame], DataFrame]], list[str]],
    ) -> None:
        """All rows of a table. ``columns``: those that ``run`` gives to what writes them, in order."""
        new = self.tables[name]
        by_name = {c.name: c for c in new.columns}
        fields = tuple(Field(c, by_name[c].type) for c in columns)
        writer = StateWriter(
            root=self.target.below(STATE),
            operator=new.operator.id,
            shown=name,
            rules=new.rules,
            names={c.stored: c.name for c in new.table.columns},
            parts=tuple(self._parts(new)),
            columns=tuple(by_name[c].stored for c in columns),
            epoch=_FIRST,
            now=self.now,
        )
        tokens = run(lambda frame: staged(writer, frame, Edit(fields=fields)))  # 3
        held = self._slices.setdefault(new.operator.id, {})
        parts = {token["part"]: token for token in map(json.loads, tokens)}
        if new.rules.told is not None and held.keys() - parts.keys():
            raise ValidationError(f"'{name}' lacks keys that other tables of its operator have.")
        for part, token in parts.items():
            held[part] = (Slice(token["manifest"], *token["groups"]),)

    def _parts(self, new: NewTable) -> Iterator[Part]:
        held, count = self._slices.get(new.operator.id, {}), 1 if new.single else self.parallelism
        for number in range(count):
            first, stop = key_groups(number, count) if count > 1 else (0, KEY_GROUPS)
            yield number, first, stop, tuple((s.manifest, s.first, s.stop) for s in held.get(number, ()))

    def publish(self) -> None:
        slices = {operator: parts for operator, parts in self._slices.items() if parts}
        commit = EpochCommit(
            epoch=_FIRST, time=self.now, offsets=self._offsets, manifests=recorded(slices), tokens={}
        )
        finish(self.target, self.identity, commit)  # 4

    def discard(self) -> None:
        if self._begun:
            self.target.remove_directory("")


def new_tables(target: Storage, identity: JobIdentity, nodes: Iterable[g.ExecNode]) -> dict[str, NewTable]:
    """All tables of state that the job has, by name. NotSupportedError where an operator cannot be built."""
    keyed = {n.operator: n for n in nodes if isinstance(n, g.Keyed)}
    found: dict[str, NewTable] = {}
    for operator in operators_of(Savepoint(storage=target, identity=identity, commit=None)):
        node = keyed[operator.id]
        spec = _checked(operator, node)
        layouts = {layout.name: layout for layout in spec.evolving}
        # Those of values come first: records are compared with them.
        for table in sorted(operator.tables, key=lambda t: t.stored == spec.layout.name):
            found[table.name] = NewTable(
                operator=operator,
                table=table,
                rules=_rules(operator, table, layouts[table.stored], spec),
                rests=frozenset(f.name for a in spec.accumulators.values() for f in a.fields[1:]),
                single=node.single,
            )
    return found


def _checked(operator: OperatorState, node: g.Keyed) -> GroupShape:
    """What an operator is, if its state can be built."""
    spec = node.spec
    if operator.kind != "group-aggregate" or not isinstance(spec, GroupShape):
        raise NotSupportedError(
            f"State of {operator.name}, {operator.text}, cannot be built: only that of a GROUP BY can."
        )
    if any(port.keys != tuple(name for name, _ in spec.keys) or port.buckets for port in node.ports):
        raise NotSupportedError(
            f"State of {operator.name} cannot be built: its rows are not sent by the hash of all their keys."
        )
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
    return spec


def _rules(operator: OperatorState, table: StoredTable, layout: Layout, spec: GroupShape) -> TableRules:
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
