"""Regular joins of two changelogs: inner, left, right, full, semi and anti, with a residual condition.

State: one multiset per side, ordered by join key; a row taken back before it came counts minus one until
it comes. Within an epoch each side is a set of weighted rows
with a weight before and after; the output is the difference of the join of the two "after" sides and
the join of the two "before" sides, computed on touched keys only:

- a key that only the left side touched needs the right side's rows of that key, but of the left only
  the changed rows (their contribution is linear), and the other way round;
- an outer, semi or anti side is shown with NULLs (or not at all) while nothing matches it, so where
  the other side changed its rows of the key are gathered too, and whether a row is matched is asked
  before and after.

Cost per epoch: the touched keys' rows of the sides that are needed, and the pairs they form. NULL in a
key that is not null-safe matches nothing; such rows are not kept in state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, hashes_of, weights_of
from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, validity, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.operators.api import EpochContext
from tidemill.operators.join_sides import Side, matched_keys, pairs_of
from tidemill.operators.residual import Residual
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.store import StateStore

PRESERVES_LEFT = frozenset({"LEFT", "FULL"})
PRESERVES_RIGHT = frozenset({"RIGHT", "FULL"})
FILTERS_LEFT = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """``columns``: every column that the port carries, (name, type); ``keys``: the join key's names,
    parallel on both sides; ``output``: which columns go on, in order. Names differ between the sides."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    output: tuple[str, ...]
    retracts: bool

    def layout(self, name: str) -> Layout:
        types = dict(self.columns)
        keys = tuple(pa.field(k, types[k]) for k in self.keys)
        values = tuple(pa.field(c, t) for c, t in self.columns if c not in self.keys)
        return Layout(name=name, keys=keys, values=values, additive=True)


@dataclass(frozen=True, kw_only=True)
class JoinSpec:
    """``kind``: INNER, LEFT, RIGHT, FULL, SEMI or ANTI. ``null_safe``: per key, whether NULL equals NULL.

    ``update_before``: -U may be shown (else what goes is -D). ``insert_only``: no ``$kind`` column.
    """

    kind: str
    left: JoinSide
    right: JoinSide
    null_safe: tuple[bool, ...]
    residual: Residual | None = None
    update_before: bool = True
    insert_only: bool = False
    sequence: bool = False

    @property
    def fingerprint(self) -> str:
        facts = (self.kind, self.left.columns, self.right.columns, self.left.keys, self.right.keys)
        return hashlib.sha256(f"join {facts} {self.null_safe} {self.residual}".encode()).hexdigest()[:16]

    @cached_property
    def layouts(self) -> tuple[Layout, Layout]:
        return self.left.layout("left"), self.right.layout("right")

    def output_schema(self) -> pa.Schema:
        left, right = dict(self.left.columns), dict(self.right.columns)
        fields = [pa.field(c, left[c]) for c in self.left.output]
        if self.kind not in FILTERS_LEFT:
            fields += [pa.field(c, right[c]) for c in self.right.output]
        if not self.insert_only:
            fields.append(pa.field(KIND_COLUMN, pa.int8()))
        if self.sequence:
            fields.append(pa.field(SEQUENCE_COLUMN, pa.int64()))
        return pa.schema(fields)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The net change of the join."""
        return _Step(self, state, epoch).run(*inputs)


@dataclass(frozen=True, slots=True)
class _Change:
    """One side's epoch: distinct rows with their net weight, keys grouped over both sides."""

    table: pa.Table
    hashes: Hashes
    weights: Ints
    kinds: Ints


@dataclass(slots=True)
class _Step:
    spec: JoinSpec
    store: StateStore
    epoch: EpochContext

    def run(self, left: pa.Table, right: pa.Table) -> pa.Table:
        spec = self.spec
        out: list[pa.Table] = []
        changes = []
        for number, (table, side) in enumerate(((left, spec.left), (right, spec.right))):
            change = _consolidated(table, side)
            matchable, lonely = self._split_null_keys(change, side)
            out += self._never_matched(lonely, number)
            changes.append(matchable)
        delta = self._matched(*changes)
        for change, side, layout in zip(changes, (spec.left, spec.right), spec.layouts, strict=True):
            self._keep(change, side, layout)
        return self._finished([*out, *delta])

    # -- rows whose key can match nothing ---------------------------------------------------------

    def _split_null_keys(self, change: _Change, side: JoinSide) -> tuple[_Change, _Change]:
        can = np.ones(len(change.weights), np.bool_)
        for key, safe in zip(side.keys, self.spec.null_safe, strict=True):
            valid = None if safe else validity(single(change.table.column(key)))
            if valid is not None:
                can &= valid
        return _picked(change, np.flatnonzero(can)), _picked(change, np.flatnonzero(~can))

    def _never_matched(self, change: _Change, number: int) -> list[pa.Table]:
        shown = self._shows_unmatched(number)
        if not shown or len(change.weights) == 0:
            return []
        rows = np.arange(len(change.weights))
        return [self._rows(number, change.table, rows, change.weights, change.kinds)]

    def _shows_unmatched(self, number: int) -> bool:
        if number == 0:
            return self.spec.kind in PRESERVES_LEFT or self.spec.kind == "ANTI"
        return self.spec.kind in PRESERVES_RIGHT

    # -- the difference on touched keys -----------------------------------------------------------

    def _matched(self, left: _Change, right: _Change) -> list[pa.Table]:
        spec = self.spec
        counts_left = spec.kind in PRESERVES_LEFT or spec.kind in FILTERS_LEFT
        counts_right = spec.kind in PRESERVES_RIGHT
        keys = matched_keys(
            (left.table, left.hashes, spec.left.keys), (right.table, right.hashes, spec.right.keys)
        )
        need_left = keys.touched[1] | (keys.touched[0] if counts_right else False)
        need_right = keys.touched[0] | (keys.touched[1] if counts_left else False)
        sides = (
            self._side(left, keys.of[0], keys.gathering(need_left), 0),
            self._side(right, keys.of[1], keys.gathering(need_right), 1),
        )
        every_pair = spec.residual is not None and (counts_left or counts_right)
        pairs = pairs_of(sides[0], sides[1], every_pair, spec.residual)
        out = [] if spec.kind in FILTERS_LEFT else self._joined(sides, pairs)
        if counts_left:
            out += self._by_match(sides, 0, pairs if every_pair else None, keys.count)
        if counts_right:
            out += self._by_match(sides, 1, pairs if every_pair else None, keys.count)
        return out

    def _side(
        self, change: _Change, owners: Ints, gathering: tuple[Ints, Hashes, list[pa.Array]], number: int
    ) -> Side:
        layout = self.spec.layouts[number]
        numbers, hashes, keys = gathering
        table = self.store.table(layout)
        found, rows = table.gather(hashes, keys)
        columns = {f.name: key.take(pa.array(found)) for f, key in zip(layout.keys, keys, strict=True)}
        columns |= {name: single(rows.column(name)) for name in rows.schema.names if name != WEIGHT}
        before = vector(rows.column(WEIGHT)).values
        names = [c for c, _ in (self.spec.left, self.spec.right)[number].columns]
        return Side.of(
            names=names,
            old=(numbers[found], [columns[n] for n in names], before),
            new=(owners, [single(change.table.column(n)) for n in names], change.weights, change.kinds),
        )

    def _joined(self, sides: tuple[Side, Side], pairs: tuple[Ints, Ints]) -> list[pa.Table]:
        left, right = sides
        i, j = pairs
        weight = left.after[i] * right.after[j] - left.before[i] * right.before[j]
        keep = np.flatnonzero(weight)
        i, j, weight = i[keep], j[keep], weight[keep]
        kinds = np.where(left.kinds[i] >= 0, left.kinds[i], right.kinds[j])
        columns = [left.column(n).take(pa.array(i)) for n in self.spec.left.output]
        columns += [right.column(n).take(pa.array(j)) for n in self.spec.right.output]
        return [self._weighted(columns, weight, kinds)]

    def _by_match(
        self, sides: tuple[Side, Side], number: int, pairs: tuple[Ints, Ints] | None, keys: int
    ) -> list[pa.Table]:
        """Rows of an outer, semi or anti side: shown by whether anything matches them."""
        own, other = sides[number], sides[1 - number]
        before, after = (
            own.matches_by_key(other, keys)
            if pairs is None
            else own.matches_by_pair(other, pairs[number], pairs[1 - number])
        )
        if self.spec.kind != "SEMI":
            before, after = ~before, ~after
        weight = np.where(after, own.after, 0) - np.where(before, own.before, 0)
        rows = np.flatnonzero(weight)
        return [self._rows(number, own.table, rows, weight[rows], own.kinds[rows])]

    # -- output -----------------------------------------------------------------------------------

    def _rows(self, number: int, table: pa.Table, rows: Ints, weight: Ints, kinds: Ints) -> pa.Table:
        """Rows of one side, NULL for the other side's columns."""
        picks = pa.array(rows)
        sides = (self.spec.left, self.spec.right)
        columns: list[pa.Array] = []
        for side, spec in enumerate(sides[: 1 if self.spec.kind in FILTERS_LEFT else 2]):
            types = dict(spec.columns)
            columns += [
                single(table.column(n)).take(picks) if side == number else pa.nulls(len(rows), types[n])
                for n in spec.output
            ]
        return self._weighted(columns, weight, kinds)

    def _weighted(self, columns: list[pa.Array], weight: Ints, kinds: Ints) -> pa.Table:
        """One row per unit of weight; what goes carries the kind of the row that made it go."""
        copies = np.abs(weight)
        if (copies > 1).any():
            picks = np.repeat(np.arange(len(weight)), copies)
            columns = [c.take(pa.array(picks)) for c in columns]
            weight, kinds = weight[picks], kinds[picks]
        gone = RowKind.UPDATE_BEFORE if self.spec.update_before else RowKind.DELETE
        negative = np.where(kinds == RowKind.UPDATE_BEFORE, gone, RowKind.DELETE)
        positive = np.where(kinds == RowKind.UPDATE_AFTER, RowKind.UPDATE_AFTER, RowKind.INSERT)
        shown = np.where(weight < 0, negative, positive).astype(np.int8)
        schema = self.spec.output_schema()
        if not self.spec.insert_only:
            columns = [*columns, to_arrow(Vec(shown), pa.int8())]
        if self.spec.sequence:
            columns = [*columns, pa.nulls(len(weight), pa.int64())]
        return pa.Table.from_arrays(columns, schema=schema)

    def _finished(self, parts: list[pa.Table]) -> pa.Table:
        schema = self.spec.output_schema()
        table = pa.concat_tables(parts) if parts else schema.empty_table()
        if self.spec.insert_only or len(table) == 0:
            return self._sequenced(table)
        odd = vector(table.column(KIND_COLUMN)).values & 1
        return self._sequenced(table.take(pa.array(np.argsort(1 - odd, kind="stable"))))

    def _sequenced(self, table: pa.Table) -> pa.Table:
        if not self.spec.sequence:
            return table
        numbers = (self.epoch.epoch << 32) + np.arange(len(table), dtype=np.int64)
        place = table.schema.get_field_index(SEQUENCE_COLUMN)
        return table.set_column(place, SEQUENCE_COLUMN, pa.array(numbers))

    # -- state ------------------------------------------------------------------------------------

    def _keep(self, change: _Change, side: JoinSide, layout: Layout) -> None:
        if len(change.weights) == 0:
            return
        columns = {f.name: single(change.table.column(f.name)) for f in layout.identity}
        codes = layout.codes(change.hashes, [columns[f.name] for f in layout.values])
        columns[WEIGHT] = to_arrow(Vec(change.weights), pa.int64())
        self.store.table(layout).put(codes, columns)


def _consolidated(table: pa.Table, side: JoinSide) -> _Change:
    """Rows with the sum of their weights; rows that cancel out are gone."""
    names = [c for c, _ in side.columns]
    table = contiguous(table)
    hashes = hashes_of(table, [single(table.column(k)) for k in side.keys])
    weights = weights_of(table)
    kinds = (
        vector(table.column(KIND_COLUMN)).values.astype(np.int64)
        if KIND_COLUMN in table.schema.names
        else np.zeros(len(table), np.int64)
    )
    plain = table.select(names)
    if weights is None:
        # Copies of a row may stand side by side: nothing of this epoch takes one away.
        return _Change(plain, hashes, np.ones(len(table), np.int64), kinds)
    identity = [single(plain.column(n)) for n in names]
    groups = group_rows(hash_columns(identity, len(table)), identity)
    heads = groups.heads
    if len(heads) == len(table):
        return _Change(plain, hashes, weights, kinds)
    sums = np.add.reduceat(weights[groups.order], groups.starts) if len(heads) else weights[:0]
    net = np.sign(sums)
    fits = np.where(net[groups.ids()] == weights[groups.order], groups.order, len(table))
    first = np.minimum.reduceat(fits, groups.starts) if len(heads) else heads
    live = np.flatnonzero(sums)
    return _picked(_Change(plain, hashes, np.zeros(len(table), np.int64), kinds), first[live], sums[live])


def _picked(change: _Change, rows: Ints, weights: Ints | None = None) -> _Change:
    if weights is None and len(rows) == len(change.weights):
        return change
    table = contiguous(change.table.take(pa.array(rows)))
    return _Change(
        table, change.hashes[rows], change.weights[rows] if weights is None else weights, change.kinds[rows]
    )
