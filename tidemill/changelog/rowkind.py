"""RowKind, weights and the names of the hidden columns that carry a changelog through Spark and Arrow.

A changelog frame has the visible columns plus ``$kind`` (TINYINT, absent when every row is +I) and,
where an operator above needs arrival order, ``$seq`` (BIGINT, strictly increasing in arrival order
within one source; epochs only ever grow it).
"""

from __future__ import annotations

from enum import IntEnum

KIND_COLUMN = "$kind"
SEQUENCE_COLUMN = "$seq"


class RowKind(IntEnum):
    """Flink's RowKind with Flink's byte values."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    @property
    def short(self) -> str:
        """``+I``, ``-U``, ``+U`` or ``-D``."""
        return _SHORT[self]

    @property
    def weight(self) -> int:
        """+1 for an insertion, -1 for a retraction: ``1 - 2 * (kind & 1)``."""
        return 1 - 2 * (self & 1)


_SHORT = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}

INSERT_ONLY = frozenset({RowKind.INSERT})
UPSERT = frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE})
ALL_KINDS = frozenset(RowKind)
RETRACTIONS = frozenset({RowKind.UPDATE_BEFORE, RowKind.DELETE})
