"""Runs a LIMIT over the first bytes of a table before it runs over the whole table.

A LIMIT without an order accepts any rows. If only projections and conditions are between the LIMIT and a
table, the rows from a part of the table are valid. They are enough if they are as many as the LIMIT needs:

    SELECT a FROM t WHERE b > 0 LIMIT 3   -- over 256 KiB of t; if that gives 1, LIMIT 2 over 4 MiB more

Cost: a job per part. No part is read twice. The first part is as large as one task reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidemill.physical.batch.nodes import TableSourceScan
from tidemill.physical.batch.sizes import width
from tidemill.physical.nodes import Calc, PhysicalNode, SortLimit

_FIRST = 256 << 10
_GROWTH = 16
_WORTH = 2
"""How many times as large as a part all must be that is left."""


@dataclass(frozen=True, slots=True)
class Portioned:
    """``root`` maps the rows of ``limit`` one by one, and ``limit`` maps and filters the rows of ``scan``."""

    root: PhysicalNode
    limit: SortLimit
    scan: TableSourceScan

    @property
    def offset(self) -> int:
        return self.limit.offset

    @property
    def most(self) -> int:
        """The number of rows that is enough, including skipped rows."""
        return self.limit.offset + (self.limit.fetch or 0)

    def sizes(self) -> Iterator[int]:
        """The bytes of the parts, in order. The rest of the table follows them."""
        remaining, size = self.scan.most or 0, _FIRST
        while size * _WORTH <= remaining:
            if size >= self.most * width(self.scan.fields):
                yield size
                remaining -= size
            size *= _GROWTH

    def taking(self, rows: int) -> PhysicalNode:
        """``root`` with a LIMIT of ``rows`` and no OFFSET."""
        return _replaced(self.root, self.limit, replace(self.limit, fetch=rows, offset=0))


def limit_by_portions(root: PhysicalNode) -> Portioned | None:
    """The LIMIT of ``root`` by parts; None if parts do not pay off, or if their rows are not rows of
    ``root``."""
    limit = _limit(root)
    scan = None if limit is None or limit.fetch is None else _scan(limit.input)
    if limit is None or scan is None:
        return None
    portions = Portioned(root, limit, scan)
    return portions if any(portions.sizes()) else None


def _limit(node: PhysicalNode) -> SortLimit | None:
    """The LIMIT whose rows ``node`` maps one by one; None if there is none."""
    if isinstance(node, Calc) and node.condition is None:
        return _limit(node.input)
    return node if isinstance(node, SortLimit) and not node.order else None


def _scan(node: PhysicalNode) -> TableSourceScan | None:
    """The scan whose rows ``node`` maps and filters one by one; None if there is none."""
    if isinstance(node, Calc):
        return _scan(node.input)
    return node if isinstance(node, TableSourceScan) else None


def _replaced(node: PhysicalNode, old: SortLimit, new: SortLimit) -> PhysicalNode:
    if isinstance(node, Calc):
        return replace(node, input=_replaced(node.input, old, new))
    return new if node is old else node
