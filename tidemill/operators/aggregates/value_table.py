"""All values of each key, as a state table of (key, value) with the number of copies.

Without TTL the table is a multiset that only takes in weights; with TTL it holds counts, because an
expired copy must not cut a weight in two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, to_arrow, vector
from tidemill.operators.aggregates.api import Source
from tidemill.operators.aggregates.count import count_weights
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.operators.rows.pairs import Pairs, pair_rows
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.table import StateTable

COUNT = "$count"
VALUE = "$value0"


@dataclass(frozen=True, slots=True)
class ValueTable:
    """Values are argument tuples (columns ``$value0``...); one with a NULL in it is not counted."""

    layout: Layout
    args: tuple[str, ...]
    weight_key: WeightKey

    @classmethod
    def of(
        cls,
        name: str,
        source: Source,
        args: tuple[str, ...],
        kinds: tuple[pa.DataType, ...],
        key: WeightKey,
    ) -> ValueTable:
        layout = Layout(
            name=name,
            keys=source.keys,
            values=tuple(pa.field(f"$value{i}", kind) for i, kind in enumerate(kinds)),
            columns=(pa.field(COUNT, pa.int64()),) if source.ttl else (),
            additive=not source.ttl,
            ttl=source.ttl,
        )
        return cls(layout, args, key)

    def put(self, rows: GroupedRows, table: StateTable) -> None:
        """Adds the weights of the epoch's rows, once for all accumulators that share the table."""
        if self.layout.name in rows.fed:
            return
        rows.fed.add(self.layout.name)
        weights = count_weights(rows, self.args, self.weight_key)
        pairs = pair_rows(rows, self.args, None if weights is None else weights != 0)
        if len(pairs.codes) == 0:
            return
        sums = pairs.sums(weights)
        if self.layout.additive:
            self._add(pairs, sums, table)
        else:
            self._replace(pairs, sums, table)

    def counts(self, entries: pa.Table) -> Ints:
        """The number of copies of each gathered value."""
        counts: Ints = vector(entries.column(WEIGHT if self.layout.additive else COUNT)).values
        return counts

    def _add(self, pairs: Pairs, sums: Ints, table: StateTable) -> None:
        chosen = np.flatnonzero(sums)
        codes, identity = pairs.take(chosen)
        names = [f.name for f in self.layout.identity]
        weight = to_arrow(Vec(sums[chosen]), pa.int64())
        table.put(codes, {**dict(zip(names, identity, strict=True)), WEIGHT: weight})

    def _replace(self, pairs: Pairs, sums: Ints, table: StateTable) -> None:
        stored = table.lookup(pairs.codes, pairs.identity)
        before = stored.vec(COUNT)
        counts = np.where(stored.there, before.values, 0) + sums
        names = [f.name for f in self.layout.identity]
        columns = {**dict(zip(names, pairs.identity, strict=True)), COUNT: to_arrow(Vec(counts), pa.int64())}
        table.put(pairs.codes, columns, counts <= 0)
