"""Ties of ROW_NUMBER in batch mode: the first of equal rows is the row that streaming mode keeps.

A streaming Top-N keeps the row that came first, but Deduplicate(keep=[LastRow]) keeps the row that came last.
Batch plans have no time attributes, so the column is traced to its table's watermark.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.catalog.table import CatalogTable, ColumnKind
from tidemill.physical.ranks import TopN
from tidemill.plan import nodes as n
from tidemill.plan.expressions import InputRef


def keeps_last(top: TopN) -> bool:
    """Whether the Top-N keeps the last row by a time attribute: among equal times the row that came last."""
    if not top.start == top.end == 1 or top.call.function != "ROW_NUMBER":
        return False
    if len(top.call.order) != 1 or top.call.order[0].ascending:
        return False
    index, source = top.call.order[0].index, top.over.input
    return source.fields[index].type.time_attribute != "" or _is_event_time(source, index)


@singledispatch
def _is_event_time(node: n.LogicalNode, index: int) -> bool:
    return False


@_is_event_time.register
def _(node: n.Filter, index: int) -> bool:
    return _is_event_time(node.input, index)


@_is_event_time.register
def _(node: n.Project, index: int) -> bool:
    expression = node.expressions[index]
    if isinstance(expression, InputRef):
        return _is_event_time(node.input, expression.index)
    # A view's columns may be merged into the table's, so a computed column may have another name.
    return _computes_event_time(node.input)


@_is_event_time.register
def _(node: n.Scan, index: int) -> bool:
    return node.columns[index] == _watermark(node.table)[0]


def _computes_event_time(node: n.LogicalNode) -> bool:
    while isinstance(node, n.Filter):
        node = node.input
    return isinstance(node, n.Scan) and _watermark(node.table)[1]


def _watermark(table: CatalogTable) -> tuple[str, bool]:
    """The column of event time and whether it is computed."""
    name = table.watermark.column if table.watermark else ""
    computed = any(c.name == name and c.kind is ColumnKind.COMPUTED for c in table.columns)
    return name, computed
