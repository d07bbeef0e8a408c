"""Lineages: digests of an operator's state that do not depend on the columns that the query shows.

A node has two kinds of digests. ``rows`` identifies its rows: sources, filters, join conditions, and keys of
aggregations, but no names, projections, or aggregate calls. ``columns`` identifies each field as an
expression over sources. So

    SELECT k, SUM(v) FROM t WHERE v > 0 GROUP BY k
    SELECT k AS key, COUNT(*), SUM(v) + 1 FROM t WHERE v > 0 GROUP BY k

have the same aggregation: ``rows`` of both are equal, and the calls are SUM(v) and COUNT(*) over columns of
``t``. So the second query uses the state of the first (see ``runtime.evolution``). For joins, Top-N and other
operators that keep whole rows, ``rows`` contains keys, conditions and orders, but not the columns that they
only carry (see ``physical.lineage_of_rows``). For all other nodes ``rows`` contains the columns of the
inputs, so any change below makes it another operator.

The order of conditions joined by AND, and of the branches of UNION ALL, does not matter.

Cost: one pass over the plan, as for ``physical.digests``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidemill.operators.aggregates.registry import widens
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING, canonical, hashed, joined
from tidemill.physical.explain.printer import Printer, call_text
from tidemill.physical.identities import Identities, without_delay
from tidemill.physical.lineage_of_rows import row_keepers
from tidemill.physical.lineage_text import Columns, Lineage, column_of, computed, text_of
from tidemill.physical.names import free_name
from tidemill.plan.expressions import AggregateCall, InputRef
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.types.widening import family_of, kind_of

_LONGEST = 200
"""Characters of an expression for people."""


@dataclass(slots=True)
class Lineages:
    """Lineages of the nodes of one job's plans, each computed once."""

    identities: Identities
    _cache: dict[int, tuple[p.PhysicalNode, Lineage]] = field(default_factory=dict)

    def of(self, node: p.PhysicalNode) -> Lineage:
        while isinstance(node, PASSING):
            node = node.input
        cached = self._cache.get(id(node))
        if cached is None or cached[0] is not node:
            cached = self._cache[id(node)] = (node, self._of(node))
        return cached[1]

    def whole(self, node: p.PhysicalNode) -> str:
        """The digest of the state of an operator that keeps all columns of its rows, by index."""
        own = self.of(node)
        inputs = [self.of(below) for below in node.inputs]
        parts = [joined(x.rows, list(x.columns)) for x in (own, *inputs)]
        return hashed(joined("Whole", [own.kept, *parts]))

    def call(self, call: AggregateCall, below: Columns) -> str:
        """The digest of an aggregate call over fields with the lineages ``below``."""
        return hashed(text_of(call, below))

    def stored_call(self, call: AggregateCall, below: Lineage) -> str:
        """The digest of a call whose state may be of a narrower type."""
        return self.call(call, below.carried if widens(call.function) else below.columns)

    def call_texts(self, calls: Sequence[AggregateCall], below: p.PhysicalNode) -> list[str]:
        """The calls over fields of ``below`` as readable texts."""
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
                late = text_of(without_delay(node.watermark), below.columns)
                rows = hashed(joined("Watermark", [below.rows, below.columns[node.rowtime], late]))
                return replace(below, rows=rows)
            case p.GroupAggregate():
                return self._group(node)
            case p.AggregatePart():
                below = self.of(node.input)
                columns, texts, carried = (
                    tuple(all_[c] for c in node.columns)
                    for all_ in (below.columns, below.texts, below.carried)
                )
                return Lineage(below.rows, columns, texts, carried)
            case p.WindowAggregate():
                return self._window(node)
            case p.WindowTableFunction():
                below = self.of(node.input)
                by = [below.columns[c] for c in (node.time, *node.partition)]
                rows = hashed(joined("Windows", [below.rows, canonical(node.window), *by]))
                own = [f.name for f in node.fields[len(below.columns) :]]
                every = range(len(below.columns))
                return computed(below, every, rows, [str(i) for i in range(len(own))], own)
            case p.LookupJoin():
                return self._lookup(node)
            case p.Union():
                return self._union([self.of(i) for i in node.inputs])
        keeper = row_keepers(node, [self.of(i) for i in node.inputs])
        return self._whole(node) if keeper is None else keeper

    def _scan(self, node: p.TableSourceScan) -> Lineage:
        rows = self.identities.table(node.table, dict(node.options))
        metadata = {c.name: c.metadata_key or "" for c in node.table.columns}
        columns, carried = (
            tuple(
                f"{c}#{hashed(joined(c, [rows, metadata.get(c, ''), kind(str(f.type))]))}"
                for c, f in zip(node.columns, node.fields, strict=True)
            )
            for kind in (kind_of, family_of)
        )
        return Lineage(rows, columns, node.columns, carried)

    def _calc(self, node: p.Calc) -> Lineage:
        below = self.of(node.input)
        rows = below.rows
        if node.condition is not None:
            rows = hashed(joined("Filter", [rows, text_of(node.condition, below.columns)]))
        columns: list[str] = []
        carried: list[str] = []
        for expr in node.projections:
            column = column_of(expr, below.columns)
            # Two calls of a non-deterministic expression are two values.
            used_names = () if is_deterministic(expr) else (*below.columns, *columns)
            columns.append(free_name(column, used_names))
            carried.append(below.carried[expr.index] if isinstance(expr, InputRef) else columns[-1])
        printer = _printer(node.input, below)
        texts = tuple(printer.text(e)[:_LONGEST] for e in node.projections)
        return Lineage(rows, tuple(columns), texts, tuple(carried))

    def _group(self, node: p.GroupAggregate) -> Lineage:
        below = self.of(node.input)
        keys = [below.columns[k] for k in node.keys]
        shared = [canonical(node.reuse)] * (node.reuse is not None)
        settings = [str(node.state_ttl), *shared, *["versions"] * node.versions]
        rows = hashed(joined("Group", [below.rows, *keys, *settings]))
        marks = ["mark"] * node.marked
        own = [*(self.call(call, below.columns) for call in node.calls), *marks]
        stored = [*(self.stored_call(call, below) for call in node.calls), *marks]
        texts = [*self.call_texts(node.calls, node.input), *["changed calls"] * node.marked]
        return computed(below, node.keys, rows, own, texts, stored)

    def _window(self, node: p.WindowAggregate) -> Lineage:
        below = self.of(node.input)
        keys = [below.columns[k] for k in node.keys]
        texts = [*self.call_texts(node.calls, node.input), *(f"window_{role}" for role in node.properties)]
        settings = [canonical(x) for x in (node.window, node.attached, node.emit, node.reuse)]
        spread = [] if node.spread is None else _spread(node.spread, below.columns)
        rows = hashed(joined("Window", [below.rows, *keys, below.columns[node.time], *settings, *spread]))
        own = [*(self.call(call, below.columns) for call in node.calls), *node.properties]
        stored = [*(self.stored_call(call, below) for call in node.calls), *node.properties]
        return computed(below, node.keys, rows, own, texts, stored)

    def _lookup(self, node: p.LookupJoin) -> Lineage:
        """A lookup finds whole rows, whatever the query shows of them."""
        below = self.of(node.input)
        table = self.identities.table(node.table, dict(node.options))
        types = [str(f.type.with_nullable(True)) for f in node.fields[len(below.columns) :]]
        found, stored = (
            [joined(c, [table, kind(text)]) for c, text in zip(node.columns, types, strict=True)]
            for kind in (kind_of, family_of)
        )
        keys = sorted(joined(node.columns[column], [below.columns[own]]) for own, column in node.keys)
        both = (*below.columns, *found)
        condition = "" if node.condition is None else text_of(node.condition, both)
        settings = [canonical(node.kind), canonical(node.retry), condition]
        rows = hashed(joined("Lookup", [below.rows, table, *settings, *keys]))
        return computed(below, range(len(below.columns)), rows, found, node.columns, stored)

    def _union(self, inputs: Sequence[Lineage]) -> Lineage:
        inputs = sorted(inputs, key=lambda branch: branch.rows)
        rows = hashed(joined("Union", [i.rows for i in inputs]))
        columns, carried = (
            tuple(f"#{hashed(joined(rows, list(c)))}" for c in zip(*branches, strict=True))
            for branches in ([i.columns for i in inputs], [i.carried for i in inputs])
        )
        return Lineage(rows, columns, inputs[0].texts, carried)

    def _whole(self, node: p.PhysicalNode) -> Lineage:
        """The lineage of a node whose state has all columns of its inputs: its identity over their
        lineages."""
        below = [self.of(i) for i in node.inputs]
        parts = [joined(i.rows, list(i.columns)) for i in below]
        own = hashed(joined(self.identities.of_itself(node), parts))
        columns = tuple(f"#{hashed(joined(own, [str(i)]))}" for i in range(len(node.fields)))
        return Lineage(own, columns, tuple(f.name for f in node.fields), columns)


def _spread(spread: p.Spread, below: Columns) -> list[str]:
    itself = () if spread.itself is None else (spread.itself,)
    column_groups = (*spread.sets, spread.with_first, spread.flags, itself)
    return [str(spread.buckets), *(f"[{', '.join(below[c] for c in columns)}]" for columns in column_groups)]


def _printer(node: p.PhysicalNode, lineage: Lineage) -> Printer:
    return Printer.over([replace(f, name=t) for f, t in zip(node.fields, lineage.texts, strict=True)])
