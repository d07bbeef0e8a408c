"""The contract of state: put, look up, cut anywhere, merge, go back, start again = a dict.

Every layout there is, those of the operators among them, with and without a TTL: random puts in random
epochs, over keys whose hashes collide, with budgets so small that layers sink in pieces. After every put and
every restart, all ways of reading must say what a dict says; so must the state of an earlier epoch. An epoch
may be begun, written and never committed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.state.layouts import TTL, operators_layouts, without_laws
from tests.state.random_values import frozen, random_value
from tidemill.changelog.columns import Hashes, single
from tidemill.changelog.hashing import hash_columns
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

Identity = tuple[Any, ...]
EPOCHS = 10
OPTIONS = (
    SpineOptions(fuel=6, fuel_per_row=1, slice_rows=2, calm_layers=3, packed_rows=1, packed_gain=1),
    SpineOptions(fuel=40, fuel_per_row=2, slice_rows=5, calm_layers=1, packed_rows=4, packed_gain=1),
    SpineOptions(fuel=0, fuel_per_row=0, slice_rows=1),
    SpineOptions(),
)
KEY, NUMBER = pa.field("k", pa.string()), pa.field("v", pa.int64())
OWN = (
    Layout(name="record", keys=(KEY,), columns=(NUMBER,)),
    Layout(name="record for a while", keys=(KEY,), columns=(NUMBER,), ttl=TTL),
    Layout(name="bare record", keys=(KEY, NUMBER)),
    Layout(name="two parts", keys=(KEY,), values=(NUMBER,), columns=(pa.field("p", pa.string()),)),
    Layout(name="two parts for a while", keys=(KEY,), values=(NUMBER,), ttl=TTL),
    Layout(name="multiset", keys=(KEY,), values=(NUMBER,), additive=True),
    Layout(name="multiset of keys", keys=(KEY,), additive=True),
    Layout(
        name="growing", keys=(KEY,), values=(NUMBER, pa.field("s", pa.string())), additive=True, growing=True
    ),
    Layout(name="no key", keys=(), values=(NUMBER,), additive=True),
    Layout(name="one record", keys=(), columns=(NUMBER,), ttl=TTL),
)


LAYOUTS = {layout.name: layout for layout in OWN} | {
    name: layout for name, layout in operators_layouts().items() if not layout.by_time
}

Put = list[tuple[Identity, Identity | None]]
"""Identities with their payload or weight; None is a deletion."""


@dataclass
class Twin:
    """What a dict says: per identity the payload and the time it was put, or the weight."""

    layout: Layout
    records: dict[Identity, tuple[Identity, int]] = field(default_factory=dict)
    weights: Counter[Identity] = field(default_factory=Counter)

    def copy(self) -> Twin:
        return Twin(self.layout, dict(self.records), Counter(self.weights))

    def take(self, put: Put, now: int) -> None:
        for identity, value in put:
            if value is None:
                self.records.pop(identity, None)
            elif self.layout.additive:
                self.weights[identity] += value[0]
            else:
                self.records[identity] = value, now

    def alive(self, now: int) -> dict[Identity, Identity]:
        if self.layout.additive:
            return {i: (w,) for i, w in self.weights.items() if w}
        ttl = self.layout.ttl
        return {i: payload for i, (payload, time) in self.records.items() if not ttl or time + ttl > now}


class Contract:
    """One table through its epochs."""

    def __init__(self, layout: Layout, root: Path, seed: int) -> None:
        self.layout, self.root, self.chance = layout, str(root), Random(f"{layout.name} {seed}")
        self.options = self.chance.choice(OPTIONS)
        self.weak = self.chance.random() < 0.5
        self.known: list[Identity] = []
        self.attempts = 0

    def run(self) -> None:
        twin, manifest, now = Twin(self.layout), None, 0
        history: list[tuple[str | None, Twin, int]] = []
        for epoch in range(EPOCHS):
            now += self.chance.choice((0, 1, TTL // 4, TTL // 4, TTL))
            puts = [self._random_put() for _ in range(self.chance.choice((0, 1, 1, 2, 5)))]
            if self.chance.random() < 0.2:
                # This attempt is never committed.
                self._step(manifest, epoch, now, puts, twin.copy())
            twin = twin.copy()
            manifest = self._step(manifest, epoch, now, puts, twin)
            history.append((manifest, twin, now))
            self._check(self._open(manifest, epoch + 1, now).table(self.layout), twin, now)
        for manifest, twin, now in self.chance.sample(history, 3):
            self._check(self._open(manifest, EPOCHS, now).table(self.layout), twin, now)

    def _open(self, manifest: str | None, epoch: int, now: int) -> StateStore:
        self.attempts += 1
        return StateStore.open(
            self.root, "op", 0, manifest, epoch, attempt=str(self.attempts), now=now, options=self.options
        )

    def _step(self, base: str | None, epoch: int, now: int, puts: list[Put], twin: Twin) -> str | None:
        store = self._open(base, epoch, now)
        table = store.table(self.layout)
        for put in puts:
            self._put(table, put)
            twin.take(put, now)
            self._check(table, twin, now)
        return store.flush()

    # -- writing ----------------------------------------------------------------------------------

    def _random_put(self) -> Put:
        """Distinct identities, old and new ones; in a growing table they may repeat."""
        drawn = [self._identity() for _ in range(self.chance.randint(1, 8))]
        chosen = drawn if self.layout.growing else list(dict.fromkeys(drawn))
        return [(identity, self._payload()) for identity in chosen]

    def _identity(self) -> Identity:
        if self.known and self.chance.random() < 0.6:
            return self.chance.choice(self.known)
        identity = tuple(random_value(self.chance, f.type) for f in self.layout.identity)
        self.known.append(identity)
        return identity

    def _payload(self) -> Identity | None:
        if self.layout.growing:
            return (1,)
        if self.layout.additive:
            return (self.chance.choice((-2, -1, 1, 2)),)
        if self.chance.random() < 0.25:
            return None
        return tuple(random_value(self.chance, f.type) for f in self.layout.columns)

    def _put(self, table: StateTable, put: Put) -> None:
        codes, identity, order = self._coded([i for i, _ in put])
        columns = dict(zip((f.name for f in self.layout.identity), identity, strict=True))
        given = [put[place][1] for place in order]
        if self.layout.additive:
            columns[WEIGHT] = pa.array([value[0] for value in given if value], pa.int64())
            table.put(codes, columns)
            return
        for place, column in enumerate(self.layout.columns):
            columns[column.name] = pa.array([v and v[place] for v in given], column.type)
        table.put(codes, columns, np.array([value is None for value in given]))

    # -- reading ----------------------------------------------------------------------------------

    def _check(self, table: StateTable, twin: Twin, now: int) -> None:
        expected = twin.alive(now)
        if self.layout.growing:
            assert self._in_pieces(table) == Counter({i: w for i, (w,) in expected.items()})
            return
        if self.layout.values:
            assert self._gathered(table) == expected
        asked = [*dict.fromkeys(self.known)]
        if not asked:
            return
        codes, identity, order = self._coded(asked)
        found = [asked[place] for place in order]
        if self.layout.additive:
            assert table.weights(codes, identity).tolist() == [expected.get(i, (0,))[0] for i in found]
            return
        answer = table.lookup(codes, identity)
        assert answer.there.tolist() == [i in expected for i in found]
        nothing = (None,) * len(self.layout.columns)
        for place, column in enumerate(self.layout.columns):
            values = map(frozen, answer.array(column.name).to_pylist())
            assert list(values) == [expected.get(i, nothing)[place] for i in found]

    def _gathered(self, table: StateTable) -> dict[Identity, Identity]:
        keys, found = self._rows(table.gather)
        assert len(set(keys)) == len(keys)
        rest = len(self.layout.identity)
        assert (len(found[0]) if found else rest) >= rest
        return {row[:rest]: row[rest:] for row in found}

    def _in_pieces(self, table: StateTable) -> Counter[Identity]:
        rest = len(self.layout.identity)
        total: Counter[Identity] = Counter()
        for row in self._rows(table.pieces)[1]:
            total[row[:rest]] += row[rest]
        return total

    def _rows(self, read: Any) -> tuple[list[Identity], list[Identity]]:
        """Identities, and whole rows, of all keys."""
        size = len(self.layout.keys)
        keys = [*dict.fromkeys(i[:size] for i in self.known)]
        hashes = self._hashes(keys)
        order = np.argsort(hashes, kind="stable")
        owners, table = read(hashes[order], self._columns([keys[n] for n in order], self.layout.keys))
        names = [f.name for f in (*self.layout.values, *self.layout.columns)]
        names += [WEIGHT] if self.layout.additive else []
        rest = zip(*(single(table.column(n)).to_pylist() for n in names), strict=True)
        rows = [(*keys[order[o]], *map(frozen, r)) for o, r in zip(owners, rest, strict=True)]
        return [row[: len(self.layout.identity)] for row in rows], rows

    # -- codes ------------------------------------------------------------------------------------

    def _coded(self, identities: list[Identity]) -> tuple[Hashes, list[pa.Array], list[int]]:
        """Codes ascending, identity columns in their order, and the places these had."""
        size = len(self.layout.keys)
        hashes = self._hashes([i[:size] for i in identities])
        columns = self._columns(identities, self.layout.identity)
        codes = self.layout.codes(hashes, columns[size:])
        order = np.argsort(codes, kind="stable")
        picks = pa.array(order)
        return codes[order], [c.take(picks) for c in columns], order.tolist()

    def _columns(self, rows: list[Identity], fields: tuple[pa.Field, ...]) -> list[pa.Array]:
        return [pa.array([row[n] for row in rows], f.type) for n, f in enumerate(fields)]

    def _hashes(self, keys: list[Identity]) -> Hashes:
        """Good ones, or three for all keys: at both ends and in the middle."""
        if not self.weak or not self.layout.keys:
            return hash_columns(self._columns(keys, self.layout.keys), len(keys))
        places = (0, 2**63, 2**64 - 1)
        return np.array([places[len(repr(key)) % 3] for key in keys], np.uint64)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LAYOUTS)
def test_state_is_a_dict(tmp_path: Path, name: str, seed: int) -> None:
    Contract(LAYOUTS[name], tmp_path, seed).run()


def test_every_layout_has_laws() -> None:
    assert without_laws() == [], "layouts.py lacks specs with the Layouts of these modules and lines"
