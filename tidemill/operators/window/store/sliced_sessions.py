"""What is kept of windows that grow (see ``dynamic``): as of sessions, but their pieces by slice as well.

Slices that have been shown are one (``SHOWN``) where pieces merge; the others are named by their end. So
a window keeps as many records as there are steps that rows are ahead of the watermark, and one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, single, to_arrow, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import NONE
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.window.store.partial_aggregates import END, PartialAggregates
from tidemill.operators.window.store.sessions import SESSION, Open, SessionState, Tables, matching
from tidemill.state.layout import Layout
from tidemill.state.run import HASH, WEIGHT

SHOWN = NONE
_SLICE = "$slice"
_NUMBER = pa.int64()


@dataclass(frozen=True, kw_only=True)
class SlicedTables(Tables):
    """``counted``: by key, the name of the window, and slice."""

    @cached_property
    def counted(self) -> Layout:
        below = self.pieces.layout
        values = (pa.field(SESSION, _NUMBER), pa.field(_SLICE, _NUMBER), *below.values)
        return Layout(
            name="slices", keys=self.keys, values=values, columns=below.columns, additive=below.additive
        )


def numbered(windows: Ints, slices: Ints) -> tuple[Ints, Ints]:
    """The first of each pair of a window and a slice, in their order; and the number of each pair."""
    order = np.lexsort((slices, windows))
    ordered = windows[order], slices[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered[0][1:] != ordered[0][:-1]) | (ordered[1][1:] != ordered[1][:-1])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(fresh) - 1
    return order[fresh], numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Pieces (what they have in ``$end`` means nothing), each of a window and a slice."""

    pieces: pa.Table
    windows: Ints
    slices: Ints

    def __len__(self) -> int:
        return len(self.windows)

    def take(self, rows: Ints) -> Parts:
        return Parts(
            pieces=self.pieces.take(pa.array(rows)), windows=self.windows[rows], slices=self.slices[rows]
        )

    def and_those(self, other: Parts) -> Parts:
        return Parts(
            pieces=pa.concat_tables([self.pieces, other.pieces]),
            windows=np.concatenate([self.windows, other.windows]),
            slices=np.concatenate([self.slices, other.slices]),
        )

    def folded(self, pieces: PartialAggregates) -> tuple[Parts, Ints]:
        """By window and slice, those of one as one; and which that is for each of these."""
        heads, numbers = numbered(self.windows, self.slices)
        if len(heads) == len(numbers) and not pieces.layout.additive:
            return self.take(heads), numbers
        place = self.pieces.schema.get_field_index(END)
        table = self.pieces.set_column(place, END, to_arrow(Vec(numbers), _NUMBER))
        table = pieces.folded(table) if len(table) else table
        ends = vector(single(table.column(END))).values
        back = np.argsort(ends, kind="stable")
        ends, table = ends[back], table.take(pa.array(back))
        return Parts(
            pieces=table, windows=self.windows[heads][ends], slices=self.slices[heads][ends]
        ), numbers


@dataclass(frozen=True, kw_only=True)
class SlicedState(SessionState):
    """The tables of one step, over the keys that it looks at."""

    def parts(self, windows: Open) -> Parts:
        """All that is kept of ``windows``."""
        pieces, table = self.tables.pieces, self.store.table(self.tables.counted)
        nothing = np.zeros(0, np.int64)
        if len(windows) == 0:
            return Parts(pieces=pieces.schema.empty_table(), windows=nothing, slices=nothing)
        numbers = np.unique(windows.keys)
        owners, found = table.gather(self.keys.hashes[numbers], self.keys.take(numbers))
        rows, owners = matching(numbers[owners], vector(single(found.column(SESSION))).values, windows)
        found = found.take(pa.array(rows))
        shown = {END: to_arrow(Vec(owners), _NUMBER)}
        own = self.keys.take(windows.keys[owners])
        shown |= {f.name: column for f, column in zip(self.tables.keys, own, strict=True)}
        shown |= {name: single(found.column(name)) for name in found.column_names if name != SESSION}
        return Parts(
            pieces=pa.table([shown[name] for name in pieces.schema.names], schema=pieces.schema),
            windows=owners,
            slices=vector(single(found.column(_SLICE))).values,
        )

    def write(self, parts: Parts, windows: Open, gone: bool = False) -> None:
        """Keeps ``parts`` of ``windows``, or forgets what is kept of them."""
        if len(parts) == 0:
            return
        layout = self.tables.counted
        keys = windows.keys[parts.windows]
        columns = {f.name: c for f, c in zip(layout.keys, self.keys.take(keys), strict=True)}
        columns[SESSION] = to_arrow(Vec(windows.names[parts.windows]), _NUMBER)
        columns[_SLICE] = to_arrow(Vec(parts.slices), _NUMBER)
        columns |= {
            f.name: single(parts.pieces.column(f.name)) for f in (*layout.values[2:], *layout.columns)
        }
        deleted = None
        if layout.additive:
            weights = vector(single(parts.pieces.column(WEIGHT))).values
            columns[WEIGHT] = pa.array(-weights if gone else weights)
        elif gone:
            deleted = np.ones(len(parts), np.bool_)
        codes = layout.codes(self.keys.hashes[keys], [columns[f.name] for f in layout.values])
        self.store.table(layout).put(codes, columns, deleted)

    def forget_orphans(self) -> None:
        """Drops what is kept of windows that a TTL has ended. Cost: that of the whole state."""
        layout = self.tables.counted
        table = self.store.table(layout)
        kept = table.everything()
        own = [single(kept.column(f.name)) for f in layout.keys]
        keys, numbers = Keys.of(own, hash_columns(own, len(kept)))
        open_ = replace(self, keys=keys).open()
        lost = np.ones(len(kept), np.bool_)
        if len(open_):
            lost[matching(numbers, vector(single(kept.column(SESSION))).values, open_)[0]] = False
        kept = kept.filter(pa.array(lost))
        columns = {
            f.name: single(kept.column(f.name)) for f in (*layout.keys, *layout.values, *layout.columns)
        }
        deleted = None
        if layout.additive:
            columns[WEIGHT] = pa.array(-vector(single(kept.column(WEIGHT))).values)
        else:
            deleted = np.ones(len(kept), np.bool_)
        table.put(vector(single(kept.column(HASH))).values, columns, deleted)
