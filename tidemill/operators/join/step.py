"""One epoch of a join: both sides of the touched keys, their pairs before and after, and the output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow, validity, vector
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.operators.api import EpochContext
from tidemill.operators.join.loose import links_of
from tidemill.operators.join.null_aware import RightRows, with_all
from tidemill.operators.join.pairs import Matches, Pairs, pairs_of
from tidemill.operators.join.shape import JoinShape, JoinSide
from tidemill.operators.join.sides import (
    Change,
    KeyNumbers,
    Kinds,
    Side,
    changed_rows,
    key_numbers,
    with_missing_columns,
)
from tidemill.operators.join.state import Multiset, Records
from tidemill.state.store import StateStore


@dataclass(slots=True)
class JoinStep:
    """The difference that one epoch makes. ``shows`` False: only the state changes."""

    spec: JoinShape
    store: StateStore
    epoch: EpochContext
    shows: bool = True

    def run(self, left: pa.Table, right: pa.Table, *counts: pa.Table) -> pa.Table:
        """``counts``: of the right rows, where the join is null-aware."""
        spec = self.spec
        out: list[pa.Table] = []
        changes: list[Change] = []
        for number, table in enumerate((left, right)):
            side = spec.sides[number]
            change = changed_rows(table, side.columns, side.keys, side.late)
            matchable, lonely = self._split_null_keys(change, spec.sides[number])
            out += self._never_matched(lonely, number)
            changes.append(matchable)
        rights = RightRows.of(self.store, *counts) if spec.null_aware else None
        if rights is not None and rights.concern_all:
            changes[0] = with_all(changes[0], self._state(0).table)
        if any(map(len, changes)):
            out += self._matched((changes[0], changes[1]), rights)
        return self._finished(out)

    # -- rows whose key can match nothing ---------------------------------------------------------

    def _split_null_keys(self, change: Change, side: JoinSide) -> tuple[Change, Change]:
        can: Mask | None = None
        for key, safe in zip(side.keys, self.spec.null_safe, strict=True):
            valid = None if safe else validity(change.columns[key])
            if valid is not None:
                can = valid if can is None else can & valid
        if can is None:
            return change, change.pick(np.zeros(0, np.int64))
        return change.pick(np.flatnonzero(can)), change.pick(np.flatnonzero(~can))

    def _never_matched(self, change: Change, number: int) -> list[pa.Table]:
        if len(change) == 0 or not (self.shows and self._shows_unmatched(number)):
            return []
        side = Side.netted(change)
        rows = np.flatnonzero(side.after)
        return [self._rows(number, side, rows, side.after[rows])]

    def _shows_unmatched(self, number: int) -> bool:
        return self.spec.counted[number] and self.spec.kind != "SEMI"

    # -- the difference on touched keys -----------------------------------------------------------

    def _matched(self, changes: tuple[Change, Change], rights: RightRows | None) -> list[pa.Table]:
        spec = self.spec
        states = self._state(0), self._state(1)
        everyone = rights is not None and rights.concern_all
        keys = key_numbers(changes, (spec.left.keys, spec.right.keys))
        sides = tuple(self._side(states, changes, keys, number, everyone) for number in (0, 1))
        left, right = sides
        counted = spec.counted if self.shows or spec.expires else (False, False)
        joins = self.shows and not spec.filters
        every = spec.residual is not None and any(counted)
        pairs = pairs_of(left, right, keys.count, every, spec.residual) if every or joins else None
        out = [self._joined(left, right, pairs)] if joins and pairs is not None else []
        for number, own in enumerate(sides):
            matches = None
            if counted[number]:
                other = sides[1 - number]
                if every and pairs is not None:
                    matches = Matches.by_pair(own, other, pairs.of(number), pairs.of(1 - number))
                elif spec.loose:
                    matches = Matches.by_links(own, other, links_of(own, other, spec.loose))
                else:
                    matches = Matches.by_key(own, other, keys.count)
                if rights is not None:
                    matches = rights.added_to(matches, own, spec.left.keys[0])
                out += [self._by_match(own, number, matches)] if self.shows else []
            states[number].keep(own, keys, matches)
        return out

    def _state(self, number: int) -> Multiset | Records:
        layout = self.spec.layouts[number]
        form = Records if self.spec.expires else Multiset
        return form(layout, self.store.table(layout))

    def _side(
        self,
        states: tuple[Multiset | Records, ...],
        changes: tuple[Change, Change],
        keys: KeyNumbers,
        number: int,
        everyone: bool,
    ) -> Side:
        """A side needs the rows of the keys that the other side touched. It also needs its own touched keys
        if its rows decide the other side's output, or if retracted rows may be stored with fewer columns."""
        side, needed = self.spec.sides[number], self.shows or self.spec.expires
        wanted_keys = keys.touched[1 - number] & needed
        takes_late = side.retracts and bool(side.late)
        if needed and (self.spec.counted[1 - number] or everyone or takes_late):
            wanted_keys = wanted_keys | keys.touched[number]
        change, placed = changes[number], keys.placed[number]
        held = states[number].held(keys, wanted_keys, change, placed)
        values = [f.name for f in side.value_fields]
        if takes_late:
            change = with_missing_columns(held, change, placed, values, side.late or ())
        return Side.of(held, change, placed, values)

    def _joined(self, left: Side, right: Side, pairs: Pairs) -> pa.Table:
        i, j = pairs.left, pairs.right
        weight = left.after[i] * right.after[j] - left.before[i] * right.before[j]
        order = _going_first(weight)
        i, j, weight = i[order], j[order], weight[order]
        kinds = np.where(left.kinds[i] >= 0, left.kinds[i], right.kinds[j])
        columns = [left.take(n, i) for n in self.spec.left.output]
        columns += [right.take(n, j) for n in self.spec.right.output]
        return self._weighted(columns, weight, kinds)

    def _by_match(self, own: Side, number: int, matches: Matches) -> pa.Table:
        """The output of an outer, semi or anti side, which depends on whether anything matches a row."""
        before, after = matches.before > 0, matches.after > 0
        if self.spec.kind != "SEMI":
            before, after = ~before, ~after
        weight = np.where(after, own.after, 0) - np.where(before, own.before, 0)
        rows = _going_first(weight)
        return self._rows(number, own, rows, weight[rows])

    # -- output -----------------------------------------------------------------------------------

    def _rows(self, number: int, own: Side, rows: Ints, weight: Ints) -> pa.Table:
        """Rows of one side, NULL for the other side's columns."""
        columns: list[pa.Array] = []
        for side, spec in enumerate(self.spec.sides[: 1 if self.spec.filters else 2]):
            types = dict(spec.columns)
            columns += [
                own.take(n, rows) if side == number else pa.nulls(len(rows), types[n]) for n in spec.output
            ]
        return self._weighted(columns, weight, own.kinds[rows])

    def _weighted(self, columns: list[pa.Array], weight: Ints, kinds: Kinds) -> pa.Table:
        """One row per unit of weight. A retraction has the kind of the row that caused it."""
        copies = np.abs(weight)
        if len(copies) and copies.max() > 1:
            picks = np.repeat(np.arange(len(weight)), copies)
            columns = [c.take(pa.array(picks)) for c in columns]
            weight, kinds = weight[picks], kinds[picks]
        if not self.spec.insert_only:
            columns = [*columns, to_arrow(Vec(self._shown(weight, kinds)), pa.int8())]
        if self.spec.sequence:
            columns = [*columns, pa.nulls(len(weight), pa.int64())]
        return pa.Table.from_arrays(columns, schema=self.spec.output_schema())

    def _shown(self, weight: Ints, kinds: Kinds) -> Kinds:
        gone = RowKind.UPDATE_BEFORE if self.spec.update_before else RowKind.DELETE
        negative = np.where(kinds == RowKind.UPDATE_BEFORE, gone, RowKind.DELETE)
        positive = np.where(kinds == RowKind.UPDATE_AFTER, RowKind.UPDATE_AFTER, RowKind.INSERT)
        return np.where(weight < 0, negative, positive).astype(np.int8)

    def _finished(self, parts: list[pa.Table]) -> pa.Table:
        schema = self.spec.output_schema()
        table = pa.concat_tables(parts) if parts else schema.empty_table()
        if self.spec.insert_only or len(table) == 0:
            return self._sequenced(table)
        odd = vector(table.column(KIND_COLUMN)).values & 1
        if (odd[1:] > odd[:-1]).any():
            table = table.take(pa.array(np.argsort(1 - odd, kind="stable")))
        return self._sequenced(table)

    def _sequenced(self, table: pa.Table) -> pa.Table:
        if not self.spec.sequence:
            return table
        numbers = (self.epoch.epoch << 32) + np.arange(len(table), dtype=np.int64)
        column_index = table.schema.get_field_index(SEQUENCE_COLUMN)
        return table.set_column(column_index, SEQUENCE_COLUMN, pa.array(numbers))


def _going_first(weight: Ints) -> Ints:
    """The rows with a weight, retractions first."""
    going = np.flatnonzero(weight < 0)
    coming = np.flatnonzero(weight > 0)
    return coming if len(going) == 0 else np.concatenate([going, coming])
