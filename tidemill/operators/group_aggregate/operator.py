"""GROUP BY: one record of accumulators per key, one net change per touched key and epoch.

Public face, used by the runtime::

    spec = GroupAggregateSpec(keys=(("k", pa.string()),), calls=(AggregateSpec(...),), retracts=False)
    output = spec.step((table,), store, context)

Input columns: the keys, the calls' arguments and filters, ``$kind`` (absent: all +I), ``$seq`` iff
``needs_sequence``, ``$hash`` (the same function of the keys at every epoch; computed if absent).
With ``partial_input`` the input is what ``combine`` gave: ``local_schema()``. Rows may have a number
(``$copies``, see ``operators.rows.copies``).
Output columns: ``output`` (default: keys, then calls), ``$kind`` unless ``insert_only``, ``$seq`` iff
``sequence``.

Invariant: a key is in state exactly if its last shown result stands. Cost per epoch: one sort of the
rows' hashes, one search of the touched keys in each run, one write of the touched records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.columns import Vec, to_arrow
from tidemill.errors import InternalError
from tidemill.operators.aggregates.extreme import as_array
from tidemill.operators.aggregates.records import is_simple
from tidemill.operators.api import HASH_COLUMN, EpochContext
from tidemill.operators.group_aggregate.net import net_step
from tidemill.operators.group_aggregate.per_record import per_record_step
from tidemill.operators.group_aggregate.shape import GroupShape
from tidemill.operators.rows.copies import columns_read, combine_equal_rows, counts_copies, with_single_copies
from tidemill.operators.rows.grouped import GroupedRows
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class GroupAggregateSpec(GroupShape):
    """The kernel of GROUP BY and SELECT DISTINCT."""

    @property
    def combinable(self) -> bool:
        """Whether rows can be combined before the exchange."""
        return self.folds or self.counts_copies

    @cached_property
    def counts_copies(self) -> bool:
        """Whether equal rows can be sent as one row with their count."""
        stay = not (self.retracts or self.needs_sequence)
        return bool(self.views) and stay and all(map(counts_copies, self.calls))

    @cached_property
    def folds(self) -> bool:
        """Whether rows can be pre-aggregated."""
        plain = all(not call.distinct for call in self.calls)
        return plain and not self.needs_sequence and all(is_simple(a) for a in self.accumulators.values())

    def local_schema(self) -> pa.Schema:
        """Columns of pre-aggregated input: keys, ``$hash``, then one set per accumulator."""
        fields = [f for a in self.accumulators.values() for f in a.fields]
        return pa.schema([*self.key_fields, pa.field(HASH_COLUMN, pa.uint64()), *fields])

    def combine(self, table: pa.Table) -> pa.Table:
        """Pre-aggregates raw input rows: one row per key with the columns of ``local_schema``; with DISTINCT
        one row for all equal rows."""
        if self.counts_copies:
            return combine_equal_rows(self.ordered(table), self._read)
        if not self.folds:
            raise InternalError("this aggregation has calls that cannot be pre-aggregated")
        if len(table) == 0:
            return self.local_schema().empty_table()
        return self.combined(self.grouped(self.ordered(table)))

    def combined(self, rows: GroupedRows) -> pa.Table:
        """``combine`` of rows that are grouped already."""
        columns = [*rows.keys, to_arrow(Vec(rows.hashes), pa.uint64())]
        for accumulator in self.accumulators.values():
            assert is_simple(accumulator)
            cells = accumulator.delta(rows)
            columns += [as_array(c, f.type) for c, f in zip(cells, accumulator.fields, strict=True)]
        return pa.table(columns, schema=self.local_schema())

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[GroupAggregateSpec, pa.Table]:
        """Combines the raw rows, so the step only sees combined rows."""
        if self.counts_copies:
            return self, pa.concat_tables(
                [*combined, *(with_single_copies(self.ordered(t), self._read) for t in raw)]
            )
        late_combined = [self.combine(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *late_combined])

    @property
    def _read(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(name for name, _ in self.keys), *columns_read(self.calls))))

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """One net change per touched key."""
        (table,) = inputs
        if len(table) == 0:
            return self.output_schema().empty_table()
        state.now = epoch.time
        if self.per_record:
            return per_record_step(self, self.ordered(table), state)
        return net_step(self, self.grouped(self.ordered(table)), state)
