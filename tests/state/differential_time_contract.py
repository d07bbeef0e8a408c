"""The contract of state by time: put, take what is due, cut anywhere, merge, go back, start again = a dict.

Every layout by time that an operator has: random puts in random epochs, over keys whose hashes collide, with
budgets so small that layers sink in pieces. After every put, every taking and every restart, all ways of
reading must say what a dict says; so must the state of an earlier epoch. An epoch may be begun, written and
never committed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.state.differential_contract import OPTIONS
from tests.state.layouts import operators_layouts
from tests.state.random_values import frozen, random_value
from tidemill.changelog.columns import Hashes, Ints
from tidemill.changelog.hashing import hash_columns
from tidemill.state.layout import Layout
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order, due_times

Identity = tuple[Any, ...]
"""When it is due, the key columns, the value columns."""
Twin = dict[Identity, tuple[Any, ...]]
"""What a dict says: per identity the payload, or the weight if it is not 0."""

EPOCHS = 8
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
TIMES = [FIRST, -1, 0, 1, 2, 3, 50, 51, 52, LAST]
LAYOUTS = {name: layout for name, layout in operators_layouts().items() if layout.by_time}


class TimeLaw:
    """One table through its epochs."""

    def __init__(self, layout: Layout, root: Path, seed: int) -> None:
        self.layout, self.root, self.chance = layout, str(root), Random(f"{layout.name} {seed}")
        self.options = self.chance.choice(OPTIONS)
        self.weak = self.chance.random() < 0.5
        self.known: list[Identity] = []
        self.attempts = 0

    def run(self) -> None:
        twin, manifest = Twin(), None
        history: list[tuple[str | None, Twin]] = []
        for epoch in range(EPOCHS):
            puts = [self._random_put() for _ in range(self.chance.choice((0, 1, 1, 2, 4)))]
            due = self.chance.choice((None, *TIMES))
            if self.chance.random() < 0.2:
                # This attempt is never committed.
                self._step(manifest, epoch, puts, due, dict(twin))
            twin = dict(twin)
            manifest = self._step(manifest, epoch, puts, due, twin)
            history.append((manifest, twin))
            self._check(self._open(manifest, epoch + 1).timeline(self.layout), twin)
        for manifest, twin in self.chance.sample(history, 3):
            self._check(self._open(manifest, EPOCHS).timeline(self.layout), twin)

    def _open(self, manifest: str | None, epoch: int) -> StateStore:
        self.attempts += 1
        return StateStore.open(
            self.root, "op", 0, manifest, epoch, attempt=str(self.attempts), options=self.options
        )

    def _step(
        self, base: str | None, epoch: int, puts: list[list[Any]], due: int | None, twin: Twin
    ) -> str | None:
        store = self._open(base, epoch)
        table = store.timeline(self.layout)
        for put in puts:
            self._put(table, put)
            self._note(twin, put)
            self._check(table, twin)
        if due is not None:
            taken = table.take_due(due)
            assert due_times(taken).tolist() == sorted(due_times(taken).tolist())
            assert self._entries(taken) == {i: v for i, v in twin.items() if i[0] <= due}
            for identity in [i for i in twin if i[0] <= due]:
                del twin[identity]
            assert len(table.take_due(due)) == 0
            self._check(table, twin)
        return store.flush()

    def _note(self, twin: Twin, put: list[Any]) -> None:
        for identity, value in put:
            before = twin.pop(identity, (0,))
            after = (before[0] + value[0],) if self.layout.additive else value
            if after is not None and not (self.layout.additive and after == (0,)):
                twin[identity] = after

    # -- writing ----------------------------------------------------------------------------------

    def _random_put(self) -> list[Any]:
        """Distinct identities, old and new ones; in a growing table they may repeat. None is a deletion."""
        drawn = [self._identity() for _ in range(self.chance.randint(1, 8))]
        chosen = drawn if self.layout.growing else list(dict.fromkeys(drawn))
        return [(identity, self._value()) for identity in chosen]

    def _identity(self) -> Identity:
        if self.known and self.chance.random() < 0.6:
            return self.chance.choice(self.known)
        rest = (random_value(self.chance, f.type) for f in self.layout.identity[1:])
        identity = (self.chance.choice(TIMES), *rest)
        self.known.append(identity)
        return identity

    def _value(self) -> tuple[Any, ...] | None:
        if self.layout.additive:
            return (1,) if self.layout.growing else (self.chance.choice((-2, -1, 1, 2)),)
        if self.chance.random() < 0.25:
            return None
        return tuple(random_value(self.chance, f.type) for f in self.layout.columns)

    def _put(self, table: TimeTable, put: list[Any]) -> None:
        dues, codes, columns = self._asked([identity for identity, _ in put])
        given = [value for _, value in put]
        if self.layout.additive:
            table.put(dues, codes, {**columns, WEIGHT: pa.array([w for (w,) in given], pa.int64())})
            return
        for place, field in enumerate(self.layout.columns):
            columns[field.name] = pa.array([v and v[place] for v in given], field.type)
        table.put(dues, codes, columns, np.array([v is None for v in given]))

    def _asked(self, identities: list[Identity]) -> tuple[Ints, Hashes, dict[str, pa.Array]]:
        """Times, codes, and the other columns of the identities."""
        fields = self.layout.identity[1:]
        columns = {f.name: pa.array([i[n + 1] for i in identities], f.type) for n, f in enumerate(fields)}
        keys = [columns[f.name] for f in self.layout.keys]
        hashes = self._hashes(keys, len(identities))
        codes = self.layout.codes(hashes, [columns[f.name] for f in self.layout.coded])
        return np.array([i[0] for i in identities], np.int64), codes, columns

    def _hashes(self, keys: list[pa.Array], rows: int) -> Hashes:
        """Good ones, or three for all keys: at both ends and in the middle."""
        if not self.weak or not keys:
            return hash_columns(keys, rows)
        places = (0, 2**63, 2**64 - 1)
        texts = [repr([frozen(v) for v in row]) for row in zip(*(k.to_pylist() for k in keys), strict=True)]
        return np.array([places[len(text) % 3] for text in texts], np.uint64)

    # -- reading ----------------------------------------------------------------------------------

    def _check(self, table: TimeTable, twin: Twin) -> None:
        assert self._entries(table.range(FIRST, LAST)) == twin
        assert self._entries(table.range(0, 50)) == {i: v for i, v in twin.items() if 0 <= i[0] <= 50}
        dues = [identity[0] for identity in twin]
        earliest, latest = table.earliest(), table.latest()
        assert not dues or (earliest is not None and latest is not None)
        if dues and earliest is not None and latest is not None:
            assert earliest <= min(dues) <= max(dues) <= latest
        if self.known:
            self._check_queries(table, twin)

    def _check_queries(self, table: TimeTable, twin: Twin) -> None:
        asked = list(dict.fromkeys(self.known))
        if self.layout.additive:
            self._check_gathered(table, twin)
        if self.layout.growing:
            return
        dues, codes, _ = self._asked(asked)
        asked = [asked[place] for place in by_time_order(dues, codes)]
        dues, codes, columns = self._asked(asked)
        if self.layout.additive:
            weights = table.weights(dues, codes, list(columns.values()))
            assert weights.tolist() == [twin.get(i, (0,))[0] for i in asked]
            return
        found = table.lookup(dues, codes, list(columns.values()))
        assert found.there.tolist() == [i in twin for i in asked]
        for place, field in enumerate(self.layout.columns):
            values = map(frozen, found.array(field.name).to_pylist())
            assert [v for v, i in zip(values, asked, strict=True) if i in twin] == [
                twin[i][place] for i in asked if i in twin
            ]

    def _check_gathered(self, table: TimeTable, twin: Twin) -> None:
        """By time and key, whatever the values."""
        size = 1 + len(self.layout.keys)
        asked = list(dict.fromkeys(i[:size] for i in self.known))
        keys = {f.name: pa.array([a[n + 1] for a in asked], f.type) for n, f in enumerate(self.layout.keys)}
        dues, hashes = (
            np.array([a[0] for a in asked], np.int64),
            self._hashes(list(keys.values()), len(asked)),
        )
        order = by_time_order(dues, hashes)
        found = table.gather(dues[order], hashes[order], list(keys.values()), order)
        parts = [[*map(frozen, found.column(f.name).to_pylist())] for f in self.layout.values]
        total: Counter[Identity] = Counter()
        for number, query in enumerate(found.queries.tolist()):
            total[(*asked[order[query]], *(part[number] for part in parts))] += found.ints(WEIGHT)[number]
        assert {i: (w,) for i, w in total.items() if w} == twin

    def _entries(self, rows: pa.Table) -> Twin:
        """Weights of growing tables stand side by side."""
        names = [DUE, *(f.name for f in (*self.layout.identity[1:], *self.layout.columns))]
        names += [WEIGHT] if self.layout.additive else []
        size, found = len(self.layout.identity), Twin()
        for row in zip(*(map(frozen, rows[name].to_pylist()) for name in names), strict=True):
            identity, value = row[:size], row[size:]
            assert self.layout.growing or identity not in found
            before = found.get(identity, (0,))[0] if self.layout.growing else 0
            found[identity] = (before + value[0],) if self.layout.growing else value
        return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", LAYOUTS)
def test_state_by_time_is_a_dict(tmp_path: Path, name: str, seed: int) -> None:
    TimeLaw(LAYOUTS[name], tmp_path, seed).run()
