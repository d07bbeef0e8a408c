"""What the columns of sinks show, so that another query which shows something else there can be told."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING
from tidemill.physical.lineage import Lineages
from tidemill.physical.lineage_text import column_of
from tidemill.plan.expressions import Cast, Expr, Literal
from tidemill.types.widening import is_wider


def shown_columns(sink: p.Sink, lineages: Lineages) -> dict[str, tuple[str, str]]:
    """By column what it is, over columns of sources, and the same for people. A column that is always NULL
    shows nothing: an INSERT leaves others than its own so."""
    node = sink.input
    while isinstance(node, PASSING):
        node = node.input
    names = (column.name for column in sink.table.written_columns)
    own = lineages.of(node)
    found = dict(zip(names, zip(own.columns, own.texts, strict=True), strict=True))
    if not isinstance(node, p.Calc):
        return found
    below = lineages.of(node.input)
    shown = {}
    for (name, (column, text)), expr in zip(found.items(), node.projections, strict=True):
        bare = _uncast(expr)
        if bare is not expr:
            column = column_of(bare, below.columns)
        if not (isinstance(bare, Literal) and bare.value is None):
            shown[name] = (column, text)
    return shown


def _uncast(expr: Expr) -> Expr:
    """A sink's wider type leaves a value what it is."""
    while isinstance(expr, Cast) and (is_wider(str(expr.operand.type), str(expr.type)) or _is_null(expr)):
        expr = expr.operand
    return expr


def _is_null(expr: Cast) -> bool:
    return isinstance(expr.operand, Literal) and expr.operand.value is None
