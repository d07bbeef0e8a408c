"""DISTINCT in windows that move: per slice and key the values that it has, for all windows with the slice.

The other calls keep accumulators as if there were no DISTINCT. Of a window that fires the sets of its slices
are put together; each value that is left is one row for the calls that ask for it. Values are kept with their
numbers, so that rows can be taken back. Cost: an entry per distinct value, key and slice; a window reads
those of its slices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import weights_of
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.rows.waiting import summed
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct, View, counting
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.state.layout import Layout
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.timeline import TimeTable

_NUMBER = pa.int64()


@dataclass(frozen=True, slots=True)
class SliceSets:
    """The sets of one view; ``told`` makes rows of values."""

    told: FirstSliceDistinct
    view: View

    @property
    def layout(self) -> Layout:
        return Layout(
            name=f"sets{self.view.name}",
            keys=self.told.fields,
            values=tuple(pa.field(name, kind) for name, kind in self.view.args if name not in self._keys),
            additive=True,
            by_time=True,
        )

    @property
    def _keys(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.told.keys)

    def cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table:
        """The values of the rows ``chosen``, with their slices in ``$end``."""
        picks = np.flatnonzero(chosen)
        picks = picks[counting(self.view, rows.take(pa.array(picks)))]
        rows = rows.take(pa.array(picks))
        weights = weights_of(rows)
        columns = {f.name: rows.column(f.name) for f in (*self.layout.keys, *self.layout.values)}
        columns[END] = to_arrow(Vec(ends[picks]), _NUMBER)
        columns[WEIGHT] = pa.array(np.ones(len(rows), np.int64) if weights is None else weights)
        return summed(pa.table([columns[name] for name in self._schema.names], schema=self._schema))

    def add(self, pieces: pa.Table, slices: TimeTable) -> None:
        if len(pieces) == 0:
            return
        columns = {name: single(pieces.column(name)) for name in pieces.column_names if name != END}
        hashes = hash_columns([columns[f.name] for f in self.layout.keys], len(pieces))
        codes = self.layout.codes(hashes, [columns[f.name] for f in self.layout.values])
        slices.put(ends_of(pieces), codes, columns)

    def folded(self, pieces: pa.Table) -> pa.Table:
        """Equal values of one slice, or window, as one."""
        return summed(pieces)

    def stored(self, entries: pa.Table) -> pa.Table:
        names = [DUE if name == END else name for name in self._schema.names]
        return entries.select(names).rename_columns(self._schema.names).cast(self._schema)

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table:
        return pa.concat_tables([ended, fresh])

    def rows(self, values: pa.Table) -> pa.Table:
        """Values of windows (``$end``), each as one row that tells it."""
        values = summed(values)
        there = vector(single(values.column(WEIGHT))).values > 0
        rows = values.filter(pa.array(there)).drop_columns([WEIGHT])
        return self.told.telling(rows, self.view)

    @property
    def _schema(self) -> pa.Schema:
        fields = (*self.layout.keys, *self.layout.values)
        return pa.schema([pa.field(END, _NUMBER), *fields, pa.field(WEIGHT, _NUMBER)])
