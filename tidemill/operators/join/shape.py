"""The spec of a join: its sides, kind and output, and the layout of its state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.operators.api import KeptRows
from tidemill.operators.join.null_aware import RowCounts
from tidemill.operators.join.residual import Residual
from tidemill.operators.join.state import multiset_layout, records_layout
from tidemill.operators.rows.entries import evolving
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.stored_before import Late, mark_fields
from tidemill.state.layout import Layout

PRESERVES_LEFT = frozenset({"LEFT", "FULL"})
PRESERVES_RIGHT = frozenset({"RIGHT", "FULL"})
FILTERS_LEFT = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """``columns``: every column that the port carries, (name, type); ``keys``: the join key's names,
    parallel on both sides; ``output``: the emitted columns, in order. Names differ between the sides. ``ttl``
    in milliseconds; 0: no expiry. ``late``: columns that earlier stored rows lack, with the epoch since which
    rows have them; None: columns are stored by position."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    output: tuple[str, ...]
    retracts: bool
    ttl: int = 0
    late: Late | None = None

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        types = dict(self.columns)
        return tuple(pa.field(k, types[k]) for k in self.keys)

    @property
    def value_fields(self) -> tuple[pa.Field, ...]:
        own = (pa.field(c, t) for c, t in self.columns if c not in self.keys)
        return (*own, *mark_fields(self.late))


@dataclass(frozen=True, kw_only=True)
class JoinShape:
    """``kind``: INNER, LEFT, RIGHT, FULL, SEMI or ANTI. ``null_safe``: per key, whether NULL equals NULL.

    ``null_aware``: an ANTI that is NOT IN over its one (null-safe) key, and nothing expires: see
    ``null_aware``. It has a third input, of the ``counts`` of right rows.
    ``loose``: of a SEMI or ANTI, pairs of columns that must be equal, too, where neither is NULL.
    ``update_before``: -U may be shown (else what goes is -D). ``insert_only``: no ``$kind`` column.
    """

    kind: str
    left: JoinSide
    right: JoinSide
    null_safe: tuple[bool, ...]
    null_aware: bool = False
    loose: tuple[tuple[str, str], ...] = ()
    residual: Residual | None = None
    update_before: bool = True
    insert_only: bool = False
    sequence: bool = False

    @property
    def fingerprint(self) -> str:
        facts = (self.kind, self.left.columns, self.right.columns, self.left.keys, self.right.keys)
        text = f"join {facts} {self.null_safe} {self.residual}" + " null-aware everywhere" * self.null_aware
        text += f" loose {self.loose}" if self.loose else ""
        text += f" growing {[layout.growing for layout in self.layouts]}"
        if self.expires:
            text += f" expires {self.left.ttl > 0} {self.right.ttl > 0}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        return self.left, self.right

    @property
    def filters(self) -> bool:
        """Whether the right side only filters the left rows."""
        return self.kind in FILTERS_LEFT

    @property
    def expires(self) -> bool:
        """Whether rows of a side expire: then both sides count exactly the current rows."""
        return self.left.ttl > 0 or self.right.ttl > 0

    @property
    def counted(self) -> tuple[bool, bool]:
        """Per side, whether its output depends on whether anything matches a row."""
        left = self.filters or self.kind in PRESERVES_LEFT
        return left, self.kind in PRESERVES_RIGHT

    @property
    def counts(self) -> RowCounts:
        """The counts of right rows that every partition needs."""
        return RowCounts(self.right.keys[0])

    @cached_property
    def layouts(self) -> tuple[Layout, Layout]:
        return self._layout(0), self._layout(1)

    @property
    def kept_rows(self) -> KeptRows:
        return KeptRows(layouts=self.layouts, finds=not self.expires)

    def _layout(self, number: int) -> Layout:
        side, name = self.sides[number], ("left", "right")[number]
        if not self.expires:
            growing = not side.retracts and not self.null_aware
            layout = multiset_layout(name, side.key_fields, side.value_fields, growing=growing)
        else:
            matches = self.counted[number]
            layout = records_layout(name, side.key_fields, side.value_fields, matches=matches, ttl=side.ttl)
        return evolving(layout, side.late)

    def output_schema(self) -> pa.Schema:
        output_sides = (self.left,) if self.filters else (self.left, self.right)
        columns = [(c, dict(side.columns)[c]) for side in output_sides for c in side.output]
        return output_schema(columns, kinds=not self.insert_only, sequence=self.sequence)
