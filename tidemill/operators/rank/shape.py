"""The spec of a Top-N: its order and ranks, and the layout of its state."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.columns import Ints
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import KeptRows
from tidemill.operators.rows.entries import entry_layout, kept_columns
from tidemill.operators.rows.keyed_rows import RowsByKey
from tidemill.operators.rows.ordering import OrderKey
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.stored_before import Late, mark_fields
from tidemill.state.layout import Layout

EVERY_STEP = sys.maxsize
STEP_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class RankShape:
    """``columns``: what the port carries, (name, type). ``rank``: name of the rank column, '' for none.

    - ``end``: None has no upper bound. ``function``: ROW_NUMBER, RANK or DENSE_RANK.
    - ``update_before``: every +U has a -U. ``insert_only``: the output has only +I (keep-first), no
      ``$kind``.
    - ``by_place``: compare rank by rank even without a rank column (with a rank column it is always so).
    - ``rounds``: emit each row's own change in small epochs (at most STEP_ROWS rows per partition), with
      EVERY_STEP in every epoch, and then with the number of the row that caused it. Otherwise the net change.
    - ``timed``, with EVERY_STEP: rows carry their watermark, and a change has the watermark of its row.
    - ``exclusive``: several different rows in a partition at the end of an epoch are an ExecutionError, which
      calls the partition's columns ``key_names``.
    - ``several``: a partition's rows are stored as those of a Top-N of several rows.
    - ``late``: columns that earlier stored rows lack, and the epochs since which rows have them; None:
      columns are stored by position.
    """

    function: str
    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    order: tuple[OrderKey, ...]
    start: int
    end: int | None
    rank: str = ""
    latest: bool = False
    by_place: bool = False
    retracts: bool = False
    update_before: bool = True
    insert_only: bool = False
    rounds: int = 0
    exclusive: bool = False
    sequence: bool = False
    timed: bool = False
    state_ttl: int = 0
    several: bool = False
    late: Late | None = None
    key_names: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        facts = (self.function, self.columns, self.partition, self.order, self.end, self.latest)
        return hashlib.sha256(f"rank {facts} {self.retracts}".encode()).hexdigest()[:16]

    @property
    def limit(self) -> int | None:
        """The LIMIT of insert-only rows without an order, for which the first rows are enough; otherwise
        None."""
        first = not (self.partition or self.order or self.retracts or self.latest or self.state_ttl)
        return self.end if first and self.function == "ROW_NUMBER" else None

    @cached_property
    def layout(self) -> Layout:
        if self.keeps_one:
            return self.records.layout
        types = dict(self.columns)
        keys = tuple(pa.field(p, types[p]) for p in self.partition)
        types |= {f.name: f.type for f in mark_fields(self.late)}
        values = tuple(pa.field(n, types[n]) for n in self.kept)
        return entry_layout("rows", keys, values, self.state_ttl, self.late)

    @property
    def kept_rows(self) -> KeptRows:
        most = self.end if self.prunes else None
        by_number = self.function == "ROW_NUMBER" and not self.keeps_one
        order = tuple(key.name for key in self.order) if by_number else None
        return KeptRows(layouts=(self.layout,), most=most, finds=not self.state_ttl, order=order)

    @cached_property
    def records(self) -> RowsByKey:
        """Where a partition's state is its one shown row: its table. Without a place to update a row
        goes and another comes."""
        return RowsByKey(
            name="rows",
            columns=self.columns,
            keys=self.partition,
            ttl=self.state_ttl,
            update_before=self.update_before or not self.in_place,
            skip_equal=True,
            by_arrival=self.rounds > 0,
            sequence=self.sequence,
            timed=self.timed,
        )

    @property
    def in_place(self) -> bool:
        """Whether the row of a rank is updated, instead of deleted and inserted."""
        return bool(self.rank) or self.by_place

    @property
    def handed_on(self) -> tuple[str, ...]:
        """The hidden columns that a change inherits from the row that caused it."""
        numbered = self.sequence and self.rounds == EVERY_STEP
        return (*[SEQUENCE_COLUMN] * numbered, *[WATERMARK_COLUMN] * self.timed)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are not of the partition key."""
        return kept_columns(self.columns, self.partition, self.late)

    @property
    def prunes(self) -> bool:
        """Whether rows below the last emitted rank may be removed."""
        return not self.retracts and self.end is not None

    @property
    def combinable(self) -> bool:
        """Whether rows that other rows of their partition displace need not reach the kernel."""
        return self.keeps_one and self.rounds < EVERY_STEP

    def steps_shown(self, sizes: Ints) -> bool:
        """Whether each row's own change is shown; ``sizes``: the rows of each partition in an epoch."""
        if self.rounds == EVERY_STEP:
            return True
        return int(sizes.max()) <= self.rounds and int(sizes.sum()) <= STEP_ROWS

    @property
    def keeps_one(self) -> bool:
        """Whether a partition's state is its one emitted row."""
        one = self.start == self.end == 1 and self.function == "ROW_NUMBER"
        return self.prunes and one and not self.several

    def output_schema(self) -> pa.Schema:
        rank = ((self.rank, pa.int64()),) if self.rank else ()
        columns = (*self.columns, *rank)
        return output_schema(columns, kinds=not self.insert_only, sequence=self.sequence, timed=self.timed)
