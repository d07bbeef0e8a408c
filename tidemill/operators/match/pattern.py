"""A row pattern as the kernel reads it: variables one after the other, each with a quantifier.

A match has consecutive rows, and each variable has the rows after the rows of the variable before it. So a
match or attempt is its first row and the number of rows per variable: variable ``v`` has the rows from
``start + counts[:v].sum()`` on. FIRST, LAST and aggregates read ranges of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, single
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.join.residual import Residual
from tidemill.operators.over.window import of_ranges

EVERY = -1
"""In place of a variable's number: the rows of all variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Matches ``least`` to ``most`` rows (None: no limit), as many as possible if ``greedy``, else as few.

    A row must meet two conditions: ``alone`` reads only the row itself, ``condition`` also reads other rows.
    None is always met.
    """

    name: str
    least: int = 1
    most: int | None = 1
    greedy: bool = True
    alone: Residual | None = None
    condition: Residual | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """``FIRST(v.x, offset)`` or, ``last``, ``LAST(v.x, offset)``: ``column`` of a row of ``variable``. Where
    there is no such row the value is that of ``absent`` in the current row ('': NULL)."""

    column: str
    variable: int
    last: bool = True
    offset: int = 0
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """An aggregate over the rows of ``variable``."""

    call: AggregateSpec
    variable: int


Piece = Reference | Folded


@dataclass(frozen=True, slots=True)
class Alone:
    """The rows of ``table`` as the ``PairColumns`` of conditions that read no other row."""

    table: pa.Table

    def __len__(self) -> int:
        return len(self.table)

    def column(self, name: str) -> pa.Array:
        return single(self.table.column(name))


@dataclass(frozen=True, slots=True)
class Paths:
    """Attempts, or matches: ``starts`` are rows of ``table``, ``counts`` the rows that each has of every
    variable, a line for a variable. It is the ``PairColumns`` of conditions and results: ``pieces`` by name,
    other names are columns of the last row."""

    table: pa.Table
    pieces: dict[str, Piece]
    starts: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def ends(self) -> Ints:
        """The row after the last one."""
        ends: Ints = self.starts + self.counts.sum(axis=0)
        return ends

    def column(self, name: str) -> pa.Array:
        piece = self.pieces.get(name)
        if piece is None:
            return single(self.table.column(name)).take(pa.array(self.ends - 1))
        lo, hi = self.range(piece.variable)
        if isinstance(piece, Folded):
            return of_ranges(piece.call, self.table, lo, hi)
        rows = hi - 1 - piece.offset if piece.last else lo + piece.offset
        there = (rows >= lo) & (rows < hi)
        values = single(self.table.column(piece.column))
        present = values.take(pa.array(np.where(there, rows, 0), mask=~there))
        if not piece.absent or there.all():
            return present
        missing = single(self.table.column(piece.absent)).take(pa.array(self.ends - 1))
        both = pa.concat_arrays([present, missing])
        positions = np.arange(len(rows))
        return both.take(pa.array(np.where(there, positions, positions + len(rows))))

    def range(self, variable: int) -> tuple[Ints, Ints]:
        """The first row of a variable and the one after its last."""
        if variable == EVERY:
            return self.starts, self.ends
        lo = self.starts + self.counts[:variable].sum(axis=0)
        return lo, lo + self.counts[variable]
