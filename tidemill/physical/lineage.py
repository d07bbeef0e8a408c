"""What an operator's state is made of, told without what the query shows of it.

Two digests per node. ``rows`` tells which rows a node gives: sources, filters, join conditions, keys of
aggregations; no names, no projections, and of an aggregation no calls. ``columns`` tells of each field what
it is, as an expression over sources. So

    SELECT k, SUM(v) FROM t WHERE v > 0 GROUP BY k
    SELECT k AS key, COUNT(*), SUM(v) + 1 FROM t WHERE v > 0 GROUP BY k

have one aggregation (``rows`` of both is equal), whose calls are SUM(v) and COUNT(*) of columns of ``t``: the
second query takes over the state of the first (see ``runtime.evolution``). A node that is not listed here has
the columns of its inputs in ``rows``, so that any change below it makes another operator of it.

Cost: one pass over the plan, as for ``physical.digests``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass, replace

from tidemill.catalog.table import CatalogTable
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING, canonical, hashed, joined, telling
from tidemill.physical.explain.printer import Printer, call_text
from tidemill.physical.identities import Identities, without_delay
from tidemill.physical.names import free_name
from tidemill.plan.expressions import AggregateCall, Expr, InputRef
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.types.logical import Field, LogicalType
from tidemill.types.widening import kind_of

Columns = tuple[str, ...]
_LONGEST = 200
"""Characters of an expression for people."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """``rows``: which rows. ``columns``: what each field is; a column of a table begins with its name, and is
    another one if it has a type of another kind. ``texts``: the same for people, as EXPLAIN spells
    expressions, over columns of tables."""

    rows: str
    columns: Columns
    texts: Columns


@dataclass(slots=True)
class Lineages:
    """Lineages of the nodes of one job's plans, each computed once."""

    identities: Identities
    _known: dict[int, tuple[p.PhysicalNode, Lineage]] = field(default_factory=dict)

    def of(self, node: p.PhysicalNode) -> Lineage:
        while isinstance(node, PASSING):
            node = node.input
        known = self._known.get(id(node))
        if known is None or known[0] is not node:
            known = self._known[id(node)] = (node, self._of(node))
        return known[1]

    def call(self, call: AggregateCall, below: Columns) -> str:
        """What an aggregate call over fields of these ``below`` is."""
        return hashed(_text(call, below))

    def call_texts(self, calls: Sequence[AggregateCall], below: p.PhysicalNode) -> list[str]:
        """The calls over fields of ``below``, for people."""
        printer = _printer(below, self.of(below))
        return [call_text(call, printer, retract=False, named=False)[:_LONGEST] for call in calls]

    def _of(self, node: p.PhysicalNode) -> Lineage:
        match node:
            case p.TableSourceScan():
                return self._scan(node)
            case p.Calc():
                return self._calc(node)
            case p.WatermarkAssigner():
                below = self.of(node.input)
                late = _text(without_delay(node.watermark), below.columns)
                rows = hashed(joined("Watermark", [below.rows, below.columns[node.rowtime], late]))
                return replace(below, rows=rows)
            case p.GroupAggregate():
                return self._group(node)
            case p.AggregatePart():
                below = self.of(node.input)
                chosen = (tuple(all_[c] for c in node.columns) for all_ in (below.columns, below.texts))
                return Lineage(below.rows, *chosen)
            case p.WindowAggregate():
                return self._window(node)
            case p.WindowTableFunction():
                below = self.of(node.input)
                by = [below.columns[c] for c in (node.time, *node.partition)]
                rows = hashed(joined("Windows", [below.rows, canonical(node.window), *by]))
                own = [f.name for f in node.fields[len(below.columns) :]]
                every = range(len(below.columns))
                return _computed(below, every, rows, [str(i) for i in range(len(own))], own)
            case p.Union():
                return self._union([self.of(i) for i in node.inputs])
        return self._whole(node)

    def _scan(self, node: p.TableSourceScan) -> Lineage:
        rows = self.identities.table(node.table, dict(node.options))
        metadata = {c.name: c.metadata_key or "" for c in node.table.columns}
        columns = (
            f"{c}#{hashed(joined(c, [rows, metadata.get(c, ''), kind_of(str(f.type))]))}"
            for c, f in zip(node.columns, node.fields, strict=True)
        )
        return Lineage(rows, tuple(columns), node.columns)

    def _calc(self, node: p.Calc) -> Lineage:
        below = self.of(node.input)
        rows = below.rows
        if node.condition is not None:
            rows = hashed(joined("Filter", [rows, _text(node.condition, below.columns)]))
        columns: list[str] = []
        for expr in node.projections:
            column = _column(expr, below.columns)
            # What is drawn twice is two values.
            taken = () if is_deterministic(expr) else (*below.columns, *columns)
            columns.append(free_name(column, taken))
        printer = _printer(node.input, below)
        return Lineage(rows, tuple(columns), tuple(printer.text(e)[:_LONGEST] for e in node.projections))

    def _group(self, node: p.GroupAggregate) -> Lineage:
        below = self.of(node.input)
        keys = [below.columns[k] for k in node.keys]
        shared = [canonical(node.reuse)] * (node.reuse is not None)
        said = [str(node.state_ttl), *shared, *["versions"] * node.versions]
        rows = hashed(joined("Group", [below.rows, *keys, *said]))
        own = [*(self.call(call, below.columns) for call in node.calls), *["mark"] * node.marked]
        texts = [*self.call_texts(node.calls, node.input), *["changed calls"] * node.marked]
        return _computed(below, node.keys, rows, own, texts)

    def _window(self, node: p.WindowAggregate) -> Lineage:
        below = self.of(node.input)
        keys = [below.columns[k] for k in node.keys]
        texts = [*self.call_texts(node.calls, node.input), *(f"window_{role}" for role in node.properties)]
        said = [canonical(x) for x in (node.window, node.attached, node.emit, node.reuse)]
        spread = [] if node.spread is None else _spread(node.spread, below.columns)
        rows = hashed(joined("Window", [below.rows, *keys, below.columns[node.time], *said, *spread]))
        own = [*(self.call(call, below.columns) for call in node.calls), *node.properties]
        return _computed(below, node.keys, rows, own, texts)

    def _union(self, inputs: Sequence[Lineage]) -> Lineage:
        rows = hashed(joined("Union", [i.rows for i in inputs]))
        columns = zip(*(i.columns for i in inputs), strict=True)
        return Lineage(rows, tuple(f"#{hashed(joined(rows, list(c)))}" for c in columns), inputs[0].texts)

    def _whole(self, node: p.PhysicalNode) -> Lineage:
        """Of a node whose state has all that its inputs give: its identity, with lineages for inputs."""
        below = [self.of(i) for i in node.inputs]
        parts = [joined(i.rows, list(i.columns)) for i in below]
        own = hashed(joined(self.identities.of_itself(node), parts))
        columns = tuple(f"#{hashed(joined(own, [str(i)]))}" for i in range(len(node.fields)))
        return Lineage(own, columns, tuple(f.name for f in node.fields))


def _spread(spread: p.Spread, below: Columns) -> list[str]:
    itself = () if spread.itself is None else (spread.itself,)
    places = (*spread.sets, spread.with_first, spread.flags, itself)
    return [str(spread.buckets), *(f"[{', '.join(below[c] for c in columns)}]" for columns in places)]


def _computed(
    below: Lineage, keys: Sequence[int], rows: str, own: Sequence[str], texts: Sequence[str]
) -> Lineage:
    """Fields of the input (``keys``), then what is computed."""
    columns = (*(below.columns[k] for k in keys), *(f"#{hashed(joined(rows, [each]))}" for each in own))
    return Lineage(rows, columns, (*(below.texts[k] for k in keys), *texts))


def _printer(node: p.PhysicalNode, lineage: Lineage) -> Printer:
    return Printer.over([replace(f, name=t) for f, t in zip(node.fields, lineage.texts, strict=True)])


def _column(expr: Expr, below: Columns) -> str:
    return below[expr.index] if isinstance(expr, InputRef) else f"#{hashed(_text(expr, below))}"


def _text(value: object, below: Columns) -> str:
    """As ``canonical``, with columns for references, and no names of results."""
    if isinstance(value, InputRef):
        return below[value.index]
    if isinstance(value, AggregateCall):
        args = [below[a] for a in value.args]
        filter_ = "" if value.filter is None else below[value.filter]
        said = (value.function, value.distinct, value.options, value.user)
        return joined("Call", [*map(canonical, said), f"[{', '.join(args)}]", filter_])
    if isinstance(value, tuple | list):
        return f"[{', '.join(_text(v, below) for v in value)}]"
    if is_dataclass(value) and not isinstance(value, LogicalType | CatalogTable | Field):
        parts = [f"{f.name}={_text(getattr(value, f.name), below)}" for f in telling(value)]
        return joined(type(value).__name__, parts)
    return canonical(value)
