"""Lineages: digests of an operator's state that do not depend on the columns that the query shows.

A node has two kinds of digests. ``rows`` identifies its rows: sources, filters, join conditions, and keys of
aggregations, but no names, projections, or aggregate calls. ``columns`` identifies each field as an
expression over sources. So

    SELECT k, SUM(v) FROM t WHERE v > 0 GROUP BY k
    SELECT k AS key, COUNT(*), SUM(v) + 1 FROM t WHERE v > 0 GROUP BY k

have the same aggregation: ``rows`` of both are equal, and the calls are SUM(v) and COUNT(*) over columns of
``t``. So the second query uses the state of the first (see ``runtime.evolution``). For joins, Top-N and other
operators that keep whole rows, ``rows`` contains keys, conditions and orders, but not the columns that they
only carry. For all other nodes ``rows`` contains the columns of the
inputs, so any change below makes it another operator.

The order of conditions joined by AND, and of the branches of UNION ALL, does not matter.

Cost: one pass over the plan, as for ``physical.digests``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch

from tidemill.operators.aggregates.registry import widens
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING, hashed, joined
from tidemill.physical.explain.printer import Printer, call_text
from tidemill.physical.identities import Identities
from tidemill.physical.lineage_text import Columns, Lineage, column_of, text_of
from tidemill.plan.expressions import AggregateCall, Cast, Expr, InputRef, Literal
from tidemill.types.widening import is_wider

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
            cached = self._cache[id(node)] = (node, lineage_of(node, self))
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

    def expression_texts(self, expressions: Sequence[Expr], below: p.PhysicalNode) -> tuple[str, ...]:
        """The expressions over fields of ``below`` as readable texts."""
        printer = _printer(below, self.of(below))
        return tuple(printer.text(e)[:_LONGEST] for e in expressions)

    def of_all_columns(self, node: p.PhysicalNode) -> Lineage:
        """The lineage of a node whose state has all columns of its inputs: its identity over their
        lineages."""
        below = [self.of(i) for i in node.inputs]
        parts = [joined(i.rows, list(i.columns)) for i in below]
        own = hashed(joined(self.identities.of_itself(node), parts))
        columns = tuple(f"#{hashed(joined(own, [str(i)]))}" for i in range(len(node.fields)))
        return Lineage(own, columns, tuple(f.name for f in node.fields), columns)


@singledispatch
def lineage_of(node: p.PhysicalNode, lineages: Lineages) -> Lineage:
    """The lineage of ``node`` from its inputs' (``lineages.of``). By default every change below makes it
    another operator."""
    return lineages.of_all_columns(node)


def _printer(node: p.PhysicalNode, lineage: Lineage) -> Printer:
    return Printer.over([replace(f, name=t) for f, t in zip(node.fields, lineage.texts, strict=True)])


def shown_columns(sink: p.Sink, lineages: Lineages) -> dict[str, tuple[str, str]]:
    """By column its lineage over columns of sources, and its readable text. A column that is always NULL is
    left out: an INSERT writes NULL to the columns that it does not name."""
    node = sink.input
    while isinstance(node, PASSING):
        node = node.input
    names = (column.name for column in sink.table.written_columns)
    own = lineages.of(node)
    by_name = dict(zip(names, zip(own.carried, own.texts, strict=True), strict=True))
    if not isinstance(node, p.Calc):
        return by_name
    below = lineages.of(node.input)
    shown = {}
    for (name, (column, text)), expr in zip(by_name.items(), node.projections, strict=True):
        bare = _uncast(expr)
        if bare is not expr:
            column = (
                below.carried[bare.index] if isinstance(bare, InputRef) else column_of(bare, below.columns)
            )
        if not (isinstance(bare, Literal) and bare.value is None):
            shown[name] = (column, text)
    return shown


def _uncast(expr: Expr) -> Expr:
    """The expression below a cast to a sink's wider type, which does not change the value."""
    while isinstance(expr, Cast) and (is_wider(str(expr.operand.type), str(expr.type)) or _is_null(expr)):
        expr = expr.operand
    return expr


def _is_null(expr: Cast) -> bool:
    return isinstance(expr.operand, Literal) and expr.operand.value is None
