"""A LIMIT over the first bytes of a table, before it is over all of them.

Below a LIMIT without an order any rows will do. If nothing but projections and conditions lies between it and
a table, its rows over a part of the table are rows of the whole, and enough if they are as many as it takes:

    SELECT a FROM t WHERE b > 0 LIMIT 3   -- over 256 KiB of t; if that gives less, over 4 MiB, 64 MiB, ..., t

Cost: what is read in vain is at most a seventh of the table, since a part is only tried if the table is much
larger. The parts begin with what one task reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemill.connectors import registry
from tidemill.connectors.api import PortionedConnector
from tidemill.physical.batch.nodes import BatchNode, Calc, Limit, Step, TableSourceScan
from tidemill.physical.batch.sizes import width

_FIRST = 256 << 10
_GROWTH = 16
_LARGER = 8
"""How many times as large as a part a table must be."""


def portions(root: BatchNode) -> Iterator[tuple[BatchNode, int]]:
    """``root`` over growing parts of its table, and how many rows are all that ``root`` may give."""
    limit = _limit(root)
    scan = None if limit is None else _scan(limit.input)
    if limit is None or limit.fetch is None or scan is None or scan.traits.most is None:
        return
    least = (limit.fetch + limit.offset) * width(scan.fields)
    size = _FIRST
    while size * _LARGER <= scan.traits.most:
        if size >= least:
            yield _over(root, replace(scan, portion=size)), limit.fetch
        size *= _GROWTH


def _limit(node: BatchNode) -> Limit | None:
    """The LIMIT whose rows are all that ``node`` gives."""
    if isinstance(node, Step) or (isinstance(node, Calc) and node.condition is None):
        return _limit(node.input)
    return node if isinstance(node, Limit) and not node.order else None


def _scan(node: BatchNode) -> TableSourceScan | None:
    """The table that ``node`` makes rows of one by one, if parts of it can be read."""
    if isinstance(node, Step | Calc):
        return _scan(node.input)
    if not isinstance(node, TableSourceScan):
        return None
    options = dict(node.options)
    connector = registry.validate(node.table, options, role="source")
    parted = isinstance(connector, PortionedConnector) and connector.gives_portions(options)
    return node if parted else None


def _over(node: BatchNode, scan: TableSourceScan) -> BatchNode:
    if isinstance(node, Step | Calc | Limit):
        return replace(node, input=_over(node.input, scan))
    return scan
