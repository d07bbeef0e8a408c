"""Pushes LIMIT and aggregates of batch plans into connectors that support them.

LIMIT goes into a scan if only projections are above the scan. Each part of the scan then gives at most that
many rows, and the LIMIT applies again. Conditions prevent it, because the scan may give rows that they
reject.

    SELECT COUNT(*) FROM t WHERE a > 1      -- the connector counts, the plan adds the counts up

A connector computes aggregates if only projections, and conditions that it understands, are between. The plan
stays Flink's: the connector gives partial aggregates, and the plan's aggregate merges them (``merging``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.grouping import Grouping, Part
from tidemill.physical.aggregates.parts import merge_function
from tidemill.physical.batch.arrival import runs_in_kernel
from tidemill.physical.batch.nodes import Aggregate, TableSourceScan
from tidemill.physical.nodes import Calc, PhysicalNode
from tidemill.plan.column_filters import whole_filters
from tidemill.plan.expressions import AggregateCall, Expr, InputRef
from tidemill.plan.predicates import conjuncts
from tidemill.types.logical import Field

_PUSHED = frozenset(("COUNT", "SUM", "MIN", "MAX"))
"""Aggregates that connectors compute."""
_LIMITED = frozenset(("filesystem", "jdbc"))
"""Connectors that can limit the rows of a scan."""


def with_row_limit(node: PhysicalNode, rows: int) -> PhysicalNode:
    """``node`` with a limit in its scan, if any ``rows`` of its rows are enough."""
    if isinstance(node, Calc) and node.condition is None:
        below = with_row_limit(node.input, rows)
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, TableSourceScan) and not node.filters and _connector(node) in _LIMITED:
        return replace(node, limit=rows)
    return node


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePushdown:
    """The aggregates that ``scan`` computes over its rows that pass ``filters``."""

    scan: TableSourceScan
    filters: tuple[ColumnFilter, ...]
    grouping: Grouping

    def merging(self, node: Aggregate) -> Aggregate:
        """``node`` as the merge of partial aggregates."""
        keys = len(node.keys)
        columns = self.scan.table.physical_columns
        parts = self.grouping.fields(tuple(Field(c.name, c.type) for c in columns))
        calls = (
            replace(call, function=merge_function(call), args=(keys + i,))
            for i, call in enumerate(node.calls)
        )
        return replace(
            node, input=replace(self.scan, fields=parts), keys=tuple(range(keys)), calls=tuple(calls)
        )


def aggregate_pushdown(node: Aggregate) -> AggregatePushdown | None:
    """The part of ``node`` that a connector can compute; None if it can compute nothing."""
    table = _table_below(node.input)
    if table is None:
        return None
    scan, columns, conditions = table
    filters = whole_filters((*conditions, *scan.filters), scan.columns)
    keys = [columns[key] for key in node.keys]
    parts = [_part(call, columns) for call in node.calls]
    known_parts = tuple(part for part in parts if part is not None)
    if filters is None or len(known_parts) < len(parts) or scan.limit is not None:
        return None
    grouping = Grouping(tuple(key for key in keys if key is not None), known_parts)
    if not grouping.columns <= {column.name for column in scan.table.physical_columns}:
        return None  # a file's name is no column of its rows
    pushdown = AggregatePushdown(scan=scan, filters=filters, grouping=grouping)
    return None if None in keys or runs_in_kernel(pushdown.merging(node)) else pushdown


def _table_below(
    node: PhysicalNode,
) -> tuple[TableSourceScan, tuple[str | None, ...], tuple[Expr, ...]] | None:
    """The scan below ``node``, the scan's column name of each field (None: no column), and the conditions."""
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
    column_names = (columns[x.index] if isinstance(x, InputRef) else None for x in node.projections)
    return scan, tuple(column_names), conditions


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
