"""Lineages of a sink's columns, to detect that another query writes other values to a column."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING
from tidemill.physical.lineage import Lineages
from tidemill.physical.lineage_text import column_of
from tidemill.plan.expressions import Cast, Expr, InputRef, Literal
from tidemill.types.widening import is_wider


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
