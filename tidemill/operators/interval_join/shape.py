"""The spec of an interval join: its sides, bounds and output, and the layouts of its state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import KeptRows
from tidemill.operators.join.residual import Residual
from tidemill.operators.join.shape import PRESERVES_LEFT, PRESERVES_RIGHT, JoinSide
from tidemill.operators.rows.entries import evolving
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout

ROW = "$row"
"""A number that no other row of the side and key has; those of an epoch are above all earlier ones."""
_NUMBER = pa.int64()
_NAMES = ("left", "right")
_BUCKETS = 2
"""Into how many stretches of time an interval is cut: with more of them less is kept beyond its wait and
looked at in vain, and more is searched."""


@dataclass(frozen=True, kw_only=True)
class IntervalShape:
    """``kind``: INNER, LEFT, RIGHT or FULL. ``times``: the time column of either side; left less right time
    lies between ``lower`` and ``upper`` ms, both inclusive. ``residual``: the rest of the condition."""

    kind: str
    left: JoinSide
    right: JoinSide
    times: tuple[str, str]
    lower: int
    upper: int
    null_safe: tuple[bool, ...]
    residual: Residual | None = None
    sequence: bool = False
    keeps_time: bool = False

    @property
    def fingerprint(self) -> str:
        facts = (self.kind, self.left.columns, self.right.columns, self.left.keys, self.right.keys)
        text = (
            f"interval-join {facts} {self.null_safe} {self.times} {self.lower} {self.upper} {self.residual}"
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        return self.left, self.right

    @property
    def outer(self) -> tuple[bool, bool]:
        """Per side, whether its rows are emitted if nothing matches them."""
        return self.kind in PRESERVES_LEFT, self.kind in PRESERVES_RIGHT

    @property
    def waits(self) -> tuple[int, int]:
        """Per side how long a row waits after its time, in ms; may be negative."""
        return -self.lower, self.upper

    @property
    def delay(self) -> int:
        """The delay of the output's watermark in ms: one more than the longest wait, because a row without a
        partner is emitted when the watermark is beyond its wait."""
        return max(0, *self.waits) + 1

    @property
    def bucket(self) -> int:
        """The width of a bucket of row times in state, in ms."""
        return max(1, -(-(self.upper - self.lower) // _BUCKETS))

    def buckets(self, times: Ints) -> Ints:
        """The bucket of each time, in ms."""
        return times // self.bucket

    @cached_property
    def rows(self) -> tuple[Layout, Layout]:
        """Per side its rows, by bucket of time and key."""
        return self._rows(0), self._rows(1)

    @cached_property
    def waiting(self) -> tuple[Layout, Layout]:
        """Per side the output columns of unmatched rows, by the end of their wait."""
        return self._waiting(0), self._waiting(1)

    @property
    def kept_rows(self) -> KeptRows:
        waiting = (table for table, waits in zip(self.waiting, self.outer, strict=True) if waits)
        return KeptRows(layouts=(*self.rows, *waiting))

    def _rows(self, number: int) -> Layout:
        side = self.sides[number]
        values = (*side.value_fields, pa.field(WATERMARK_COLUMN, _NUMBER), pa.field(ROW, _NUMBER))
        layout = Layout(
            name=_NAMES[number],
            keys=side.key_fields,
            values=values,
            additive=True,
            growing=True,
            by_time=True,
        )
        return evolving(layout, side.late)

    def _waiting(self, number: int) -> Layout:
        side, types = self.sides[number], dict(self.sides[number].columns)
        output_fields = [pa.field(c, types[c]) for c in side.output if c not in side.keys]
        return Layout(
            name=f"{_NAMES[number]}-waiting",
            keys=side.key_fields,
            values=(pa.field(ROW, _NUMBER),),
            columns=(*output_fields, pa.field(WATERMARK_COLUMN, _NUMBER)),
            by_time=True,
        )

    def output_schema(self) -> pa.Schema:
        columns = [(c, dict(side.columns)[c]) for side in self.sides for c in side.output]
        return output_schema(columns, sequence=self.sequence, timed=self.keeps_time)
