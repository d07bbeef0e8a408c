"""What a batch plan asks of a table beside its columns and conditions, of connectors that know more.

LIMIT goes into a scan that nothing but projections lies above: each part of the scan gives so many rows at
most, and the LIMIT looks at them again. Conditions are in the way: a table may give rows that they rule out.

Aggregates are made where the rows lie if nothing but projections and conditions that can be told lie between.
The plan stays what it is, Flink's: what comes are parts of the aggregates, which are put together as the plan
says (``merging``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.grouping import Grouping, Part
from tidemill.physical.aggregates.parts import merged_by
from tidemill.physical.batch.arrival import by_kernel
from tidemill.physical.batch.nodes import Aggregate, BatchNode, Calc, TableSourceScan
from tidemill.plan.column_filters import whole_filters
from tidemill.plan.expressions import AggregateCall, Expr, InputRef
from tidemill.plan.predicates import conjuncts
from tidemill.types.logical import Field

_PUSHED = frozenset(("COUNT", "SUM", "MIN", "MAX"))
"""Aggregates that connectors compute."""
_LIMITED = frozenset(("filesystem", "jdbc"))
"""Connectors that are told how many rows are wanted."""


def limited(node: BatchNode, rows: int) -> BatchNode:
    """``node``, of which ``rows`` rows are enough, whichever."""
    if isinstance(node, Calc) and node.condition is None:
        below = limited(node.input, rows)
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, TableSourceScan) and not node.filters and _connector(node) in _LIMITED:
        return replace(node, limit=rows)
    return node


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What ``scan`` is asked for in place of its rows, of those for which ``filters`` hold."""

    scan: TableSourceScan
    filters: tuple[ColumnFilter, ...]
    grouping: Grouping

    def merging(self, node: Aggregate) -> Aggregate:
        """What ``node`` is over the parts."""
        keys = len(node.keys)
        columns = self.scan.table.physical_columns
        parts = self.grouping.fields(tuple(Field(c.name, c.type) for c in columns))
        calls = (
            replace(call, function=merged_by(call), args=(keys + i,)) for i, call in enumerate(node.calls)
        )
        return replace(
            node, input=replace(self.scan, fields=parts), keys=tuple(range(keys)), calls=tuple(calls)
        )


def pushed(node: Aggregate) -> Pushed | None:
    """What ``node`` may ask of a connector that aggregates; None where it is not right above a table."""
    found = _table_below(node.input)
    if found is None:
        return None
    scan, columns, conditions = found
    filters = whole_filters((*conditions, *scan.filters), scan.columns)
    keys = [columns[key] for key in node.keys]
    parts = [_part(call, columns) for call in node.calls]
    known = tuple(part for part in parts if part is not None)
    if filters is None or len(known) < len(parts) or scan.limit is not None:
        return None
    grouping = Grouping(tuple(key for key in keys if key is not None), known)
    if not grouping.columns <= {column.name for column in scan.table.physical_columns}:
        return None  # what a file is called no row says
    made = Pushed(scan=scan, filters=filters, grouping=grouping)
    return None if None in keys or by_kernel(made.merging(node)) else made


def _table_below(
    node: BatchNode,
) -> tuple[TableSourceScan, tuple[str | None, ...], tuple[Expr, ...]] | None:
    """The table that ``node`` reads, which of its columns each field is (None: none), and what holds."""
    if isinstance(node, TableSourceScan):
        return node, node.columns, ()
    below = _table_below(node.input) if isinstance(node, Calc) else None
    if below is None or not isinstance(node, Calc):
        return None
    scan, columns, conditions = below
    if node.condition is not None:
        if columns != scan.columns:
            return None
        conditions = (*conditions, *conjuncts(node.condition))
    shown = (columns[x.index] if isinstance(x, InputRef) else None for x in node.projections)
    return scan, tuple(shown), conditions


def _part(call: AggregateCall, columns: tuple[str | None, ...]) -> Part | None:
    plain = call.function in _PUSHED and not call.distinct and call.filter is None and call.user is None
    if not plain or call.options or len(call.args) > 1:
        return None
    if not call.args:
        return Part(call.function, None, call.type)
    column = columns[call.args[0]]
    return None if column is None else Part(call.function, column, call.type)


def _connector(scan: TableSourceScan) -> str:
    return dict(scan.options).get("connector", "")
