"""Estimates the bytes of a row in Spark's memory from its columns.

Only orders of magnitude matter, to decide whether a side of a join can be broadcast. A too high estimate is
better than a too low one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidemill.physical.nodes import PhysicalNode
from tidemill.plan import nodes as n
from tidemill.types import logical as t
from tidemill.types.logical import Field

SizeOf = Callable[[n.Scan | n.FrameScan], int | None]
"""The bytes of all the columns a table or frame has, at most, or None if nobody knows."""

_FIXED = 8
_TEXT = 24
_NESTED = 64


def width(fields: Sequence[Field]) -> int:
    return sum(_column(f.type) for f in fields) or 1


def _column(kind: t.LogicalType) -> int:
    if isinstance(kind, t.LengthType):
        return _FIXED + min(kind.length, _TEXT)
    if isinstance(kind, t.ArrayType | t.MapType | t.MultisetType):
        return _NESTED
    return width(kind.fields) if isinstance(kind, t.RowType) else _FIXED


def with_fields(node: PhysicalNode, fields: Sequence[Field], copies: int = 1) -> int | None:
    """The size in bytes of the rows of ``node``, each ``copies`` times, with the columns ``fields``."""
    return None if node.most is None else node.most * copies * width(fields) // width(node.fields)
