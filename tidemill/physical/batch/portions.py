"""A LIMIT over the first bytes of a table, before it is over all of them.

Below a LIMIT without an order any rows will do. If nothing but projections and conditions lies between it and
a table, its rows over a part of the table are rows of the whole, and enough if they are as many as it takes:

    SELECT a FROM t WHERE b > 0 LIMIT 3   -- over 256 KiB of t; if that gives 1, LIMIT 2 over 4 MiB more

Cost: a job for each part. No part is read twice. The parts begin with what one task reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidemill.physical.batch.nodes import BatchNode, Calc, Limit, TableSourceScan
from tidemill.physical.batch.sizes import width

_FIRST = 256 << 10
_GROWTH = 16
_WORTH = 2
"""How many times as large as a part all must be that is left."""


@dataclass(frozen=True, slots=True)
class Portioned:
    """``root`` gives the rows of ``limit`` one by one, which takes those of ``scan``."""

    root: BatchNode
    limit: Limit
    scan: TableSourceScan

    @property
    def offset(self) -> int:
        return self.limit.offset

    @property
    def most(self) -> int:
        """How many rows are enough, those that are skipped included."""
        return self.limit.offset + (self.limit.fetch or 0)

    def sizes(self) -> Iterator[int]:
        """The bytes of the parts, in order; all that is left comes after them."""
        left, size = self.scan.most or 0, _FIRST
        while size * _WORTH <= left:
            if size >= self.most * width(self.scan.fields):
                yield size
                left -= size
            size *= _GROWTH

    def taking(self, rows: int) -> BatchNode:
        """``root`` with so many rows, of which none is skipped."""
        return _replaced(self.root, self.limit, replace(self.limit, fetch=rows, offset=0))


def portioned(root: BatchNode) -> Portioned | None:
    """None where parts of a table are not worth it, or their rows are not the rows of ``root``."""
    limit = _limit(root)
    scan = None if limit is None or limit.fetch is None else _scan(limit.input)
    if limit is None or scan is None:
        return None
    found = Portioned(root, limit, scan)
    return found if any(found.sizes()) else None


def _limit(node: BatchNode) -> Limit | None:
    """The LIMIT whose rows are all that ``node`` gives."""
    if isinstance(node, Calc) and node.condition is None:
        return _limit(node.input)
    return node if isinstance(node, Limit) and not node.order else None


def _scan(node: BatchNode) -> TableSourceScan | None:
    """The table that ``node`` makes rows of one by one."""
    if isinstance(node, Calc):
        return _scan(node.input)
    return node if isinstance(node, TableSourceScan) else None


def _replaced(node: BatchNode, old: Limit, new: Limit) -> BatchNode:
    if isinstance(node, Calc):
        return replace(node, input=_replaced(node.input, old, new))
    return new if node is old else node
