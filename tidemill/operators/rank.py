"""Top-N and deduplication: the rows ``start``..``end`` of each partition by an order.

State: the partition's rows with their arrivals (ties go by arrival, the earlier first; with ``latest``
the later first); a retraction takes the earliest copy of its row, one of a row that is not there is
ignored. Of an append-only input only the best ``end`` rows are kept: what falls out can never come back.
Any changelog is accepted: touched partitions are ranked before and after the epoch, the difference is
the output.

Cost per epoch: the rows of the touched partitions (at most ``end`` each for append-only input).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import single
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.entries import entry_layout
from tidemill.operators.keyed_rows import RowsByKey
from tidemill.operators.ordering import OrderKey
from tidemill.operators.rank_step import RankStep
from tidemill.operators.top_one import TopOneStep, record_shape
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RankSpec:
    """``columns``: what the port carries, (name, type). ``rank``: name of the rank column, '' for none.

    ``end`` None has no upper bound. ``function``: ROW_NUMBER, RANK or DENSE_RANK. ``update_before``: -U
    goes with every +U. ``by_place``: compare place by place without a rank column too (with one it is
    always so). ``insert_only``: only +I can come out (keep-first), no ``$kind`` column. ``rounds``: where
    no partition has more rows in an epoch than that, each row's own change is shown; else the net change.
    ``exclusive``: an epoch that ends with several different rows in a partition is an ExecutionError.
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
    state_ttl: int = 0

    @property
    def fingerprint(self) -> str:
        facts = (self.function, self.columns, self.partition, self.order, self.end, self.latest)
        return hashlib.sha256(f"rank {facts} {self.retracts}".encode()).hexdigest()[:16]

    @cached_property
    def layout(self) -> Layout:
        if self.keeps_one:
            return self.records.layout
        types = dict(self.columns)
        keys = tuple(pa.field(p, types[p]) for p in self.partition)
        return entry_layout("rows", keys, tuple(pa.field(n, types[n]) for n in self.kept), self.state_ttl)

    @cached_property
    def records(self) -> RowsByKey:
        """Where a partition's state is its one shown row."""
        return record_shape(self)

    @property
    def in_place(self) -> bool:
        """Whether a rank's row is updated, not deleted and inserted."""
        return bool(self.rank) or self.by_place

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are not of the partition key."""
        return tuple(n for n, _ in self.columns if n not in self.partition)

    @property
    def prunes(self) -> bool:
        """Whether rows below the last shown rank may be forgotten."""
        return not self.retracts and self.end is not None

    @property
    def keeps_one(self) -> bool:
        """Whether a partition's state is its one shown row."""
        return self.prunes and self.start == self.end == 1 and self.function == "ROW_NUMBER"

    def output_schema(self) -> pa.Schema:
        fields = [pa.field(n, t) for n, t in self.columns]
        if self.rank:
            fields.append(pa.field(self.rank, pa.int64()))
        if not self.insert_only:
            fields.append(pa.field(KIND_COLUMN, pa.int8()))
        if self.sequence:
            fields.append(pa.field(SEQUENCE_COLUMN, pa.int64()))
        return pa.schema(fields)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The net change of the shown rows."""
        table = contiguous(inputs[0])
        if len(table) == 0:
            return self.output_schema().empty_table()
        state.now = epoch.time
        if self.keeps_one:
            return TopOneStep(self, state).run(table)
        table, step = by_arrival(table), RankStep(self, state, epoch)
        groups = self.grouped(table)
        if int(groups.sizes.max()) > self.rounds:
            return step.run(table, groups)
        turns = [contiguous(turn) for turn in _turns(table, groups)]
        output = pa.concat_tables([step.run(turn, self.grouped(turn)) for turn in turns])
        return _numbered(output, epoch) if self.sequence else output

    def grouped(self, table: pa.Table) -> Groups:
        """The rows by partition."""
        keys = [single(table.column(k)) for k in self.partition]
        return group_rows(hashes_of(table, keys), keys)


def _turns(table: pa.Table, groups: Groups) -> list[pa.Table]:
    """The first row of each partition, then the second..."""
    turn = np.empty(len(table), np.int64)
    turn[groups.order] = np.arange(len(table)) - np.repeat(groups.starts, groups.sizes)
    order = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    return [table.take(pa.array(rows)) for rows in np.split(order, ends[:-1])]


def _numbered(table: pa.Table, epoch: EpochContext) -> pa.Table:
    numbers = (epoch.epoch << 32) + np.arange(len(table), dtype=np.int64)
    place = table.schema.get_field_index(SEQUENCE_COLUMN)
    return table.set_column(place, SEQUENCE_COLUMN, pa.array(numbers))
