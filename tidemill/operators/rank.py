"""Top-N and deduplication: the rows ``start``..``end`` of each partition by an order.

State: the partition's rows with their arrivals (ties go by arrival, the earlier first; with ``latest``
the later first); a retraction takes the earliest copy of its row, one of a row that is not there is
ignored. Of an append-only input only the best ``end`` rows are kept: what falls out can never come back.
Any changelog is accepted: touched partitions are ranked before and after the epoch, the difference is
the output.

Cost per epoch: the rows of the touched partitions (at most ``end`` each for append-only input).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import single
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.rank_shape import RankShape
from tidemill.operators.rank_step import RankStep
from tidemill.operators.top_one import TopOneStep
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RankSpec(RankShape):
    """The kernel of Top-N and deduplication."""

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
