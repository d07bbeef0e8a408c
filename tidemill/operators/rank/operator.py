"""Top-N and deduplication: the rows ``start``..``end`` of each partition by an order.

State: the partition's rows with their arrival, which breaks ties (earlier first; with ``latest`` later
first). A retraction removes the earliest copy of its row, and is ignored if there is none. For append-only
input only the best ``end`` rows are kept, because other rows can never come back. The operator accepts any
changelog: it ranks touched partitions before and after the epoch, and emits the difference.

Cost per epoch: the rows of the touched partitions (at most ``end`` each for append-only input).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import arrival_order, by_arrival, contiguous, hashes_of, one_by_one
from tidemill.changelog.columns import Ints, single
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.rank.ranking import Ranking
from tidemill.operators.rank.shape import STEP_ROWS, RankShape
from tidemill.operators.rank.step import RankStep
from tidemill.operators.rank.top_one import TopOneStep, best_rows
from tidemill.operators.rows.turns import turns
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
        if not self.steps_shown(groups.sizes):
            return step.run(table, groups)
        each = turns(table, groups, updates=self.timed)
        parts = [contiguous(table.take(pa.array(rows))) for rows in each]
        output = pa.concat_tables([step.run(part, self.grouped(part)) for part in parts])
        return _numbered(output, epoch) if self.sequence and not self.handed_on else output

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """See ``operators.api.TakesRows``."""
        rows = one_by_one(rows, (self.end or 0) if self.prunes else None)
        replace(self, rounds=0, sequence=False, timed=False).step((rows,), state, epoch)

    def combine(self, table: pa.Table) -> pa.Table:
        """The best row of each partition; all rows if each row's own change may be emitted."""
        if len(table) <= STEP_ROWS:
            return table
        table = contiguous(by_arrival(table))
        return table.take(pa.array(np.sort(best_rows(self, table, self.grouped(table)))))

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[RankSpec, pa.Table]:
        """The spec for combined input: it emits the net change, because intermediate rows are missing."""
        return replace(self, rounds=0), pa.concat_tables([*raw, *combined])

    def promising(self, table: pa.Table) -> Ints:
        """The rows of append-only input that other rows of ``table`` do not displace."""
        if not self.prunes:
            return np.arange(len(table))
        arrived = arrival_order(table)
        table = contiguous(table.take(pa.array(arrived)))
        groups = self.grouped(table)
        if self.keeps_one:
            return arrived[best_rows(self, table, groups)]
        return arrived[groups.order[Ranking(self).promising(table, groups)]]

    def grouped(self, table: pa.Table) -> Groups:
        """The rows by partition."""
        keys = [single(table.column(k)) for k in self.partition]
        return group_rows(hashes_of(table, keys), keys)


def _numbered(table: pa.Table, epoch: EpochContext) -> pa.Table:
    numbers = (epoch.epoch << 32) + np.arange(len(table), dtype=np.int64)
    column_index = table.schema.get_field_index(SEQUENCE_COLUMN)
    return table.set_column(column_index, SEQUENCE_COLUMN, pa.array(numbers))
