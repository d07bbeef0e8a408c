"""All values of each key with their numbers of copies: the state of COLLECT and PERCENTILE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.aggregates.api import AggregateSpec, Cells, Source
from tidemill.operators.aggregates.arrivals import Bag, bag_of
from tidemill.operators.aggregates.value_table import ValueTable
from tidemill.operators.rows.grouped import GroupedRows
from tidemill.state.layout import Layout
from tidemill.state.table import StateTable


@dataclass(frozen=True, slots=True)
class CountsAccumulator:
    """One cell: the ``Bag`` of distinct argument tuples with counts; one with a NULL is left out."""

    name: str
    values: ValueTable

    @classmethod
    def of(cls, spec: AggregateSpec, source: Source) -> CountsAccumulator:
        name = spec.canonical("COUNTS")
        return cls(name, ValueTable.of(name, source, spec.args, spec.arg_types, spec.weight_key))

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return ()

    @property
    def layout(self) -> Layout:
        return self.values.layout

    def advance(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[Cells, Cells]:
        before = self._bag(rows, table)
        self.values.put(rows, table)
        return (before,), (self._bag(rows, table),)

    def _bag(self, rows: GroupedRows, table: StateTable) -> Bag:
        owners, entries = table.gather(rows.hashes, rows.keys)
        counts = self.values.counts(entries)
        there = np.flatnonzero(counts > 0)
        # Always in the same order: a retraction must match the emitted row.
        hashes = hash_columns([single(entries.column(f.name)) for f in self.layout.values], len(entries))
        there = there[np.lexsort((hashes[there], owners[there]))]
        columns = [single(entries.column(f.name)).take(pa.array(there)) for f in self.layout.values]
        return bag_of(owners[there], columns, rows.groups.count, counts[there])
