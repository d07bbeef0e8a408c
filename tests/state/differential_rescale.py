"""State spread over other numbers of partitions in between: what is read is as if there were only one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.columns import Hashes, Ints, single, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.runtime.spark.exchange import partition_of
from tidemill.state.cleanup import StateCollector
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.run import WEIGHT
from tidemill.state.slices import KEY_GROUPS, Slice, key_groups, read_slices, resliced
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order

KEY, VALUE = pa.field("k", pa.int64()), pa.field("v", pa.int64())
RECORDS = Layout(name="records", keys=(KEY,), columns=(VALUE,))
PAIRS = Layout(name="pairs", keys=(KEY,), values=(VALUE,), additive=True)
TIMERS = Layout(name="timers", keys=(KEY,), columns=(VALUE,), by_time=True)
COUNTS = Layout(name="counts", keys=(KEY,), values=(VALUE,), additive=True, by_time=True)
EVENTS = Layout(name="events", keys=(KEY,), values=(VALUE,), additive=True, by_time=True, growing=True)
KEYS = np.arange(400)
HASHES = hash_columns([pa.array(KEYS)], len(KEYS))
OPTIONS = SpineOptions(fuel=60, fuel_per_row=1, slice_rows=10, calm_layers=4)
STEPS = (2, 2, 7, 7, 1, 1, 3, 3, 3, 24, 5, 2)


class Twin:
    """What all partitions together should hold."""

    def __init__(self) -> None:
        self.records: dict[int, int] = {}
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.timers: dict[tuple[int, int], int] = {}
        self.counts: Counter[tuple[int, int]] = Counter()
        self.events: Counter[tuple[int, int]] = Counter()


@pytest.mark.parametrize("seed", range(4))
def test_state_follows_its_keys_to_any_number_of_partitions(tmp_path: Path, seed: int) -> None:
    rng, twin = np.random.default_rng(seed), Twin()
    state: dict[int, tuple[Slice, ...]] = {}
    collector = StateCollector(StateFiles.open(str(tmp_path)))
    for epoch, partitions in enumerate(STEPS):
        state = resliced(state, partitions)
        touched = []
        due = int(rng.integers(0, 40))
        taken: dict[tuple[int, int], int] = {}
        changed = set(rng.choice(partitions, -(-partitions // 2), replace=False).tolist())
        for partition in range(partitions):
            groups = key_groups(partition, partitions)
            store = StateStore.open(
                str(tmp_path), "op", partition, state.get(partition), epoch, groups=groups, options=OPTIONS
            )
            mine = KEYS[partition_of(HASHES, partitions) == partition]
            if partition not in changed:  # it runs, too, and may name another partition's manifest
                manifest = store.flush()
                if manifest is not None:
                    state[partition] = (Slice(manifest, *groups),)
                    touched.append(("op", partition))
                assert store.files is None
                continue
            _epoch(store, rng, mine, epoch, twin)
            rows = store.timeline(TIMERS).take_due(due)
            taken |= _entries(rows)
            gone = {e: v for e, v in twin.timers.items() if e[0] <= due and e[1] in set(mine.tolist())}
            assert _entries(rows) == gone
            twin.timers = {e: v for e, v in twin.timers.items() if e not in gone}
            manifest = store.flush()
            if manifest is not None:
                state[partition] = (Slice(manifest, *groups),)
                touched.append(("op", partition))
            if manifest is not None and store.files is not None:
                collector.know(manifest, store.files)
        manifests = {s.manifest for part in state.values() for s in part}
        collector.collect({"op": manifests}, touched, epoch)
        _assert_same(tmp_path, state, partitions, epoch, twin)
    assert collector.sweep({s.manifest for part in state.values() for s in part}) == []


def _epoch(store: StateStore, rng: np.random.Generator, mine: Ints, epoch: int, twin: Twin) -> None:
    keys = np.sort(rng.choice(mine, min(len(mine), 40), replace=False))
    order = np.argsort(HASHES[keys])
    keys = keys[order]
    hashes: Hashes = HASHES[keys]
    gone = rng.random(len(keys)) < 0.3
    values = np.full(len(keys), epoch)
    store.table(RECORDS).put(hashes, {"k": pa.array(keys), "v": pa.array(values)}, gone)
    for key, deleted in zip(keys.tolist(), gone.tolist(), strict=True):
        twin.records.pop(key, None) if deleted else twin.records.update({key: epoch})
    codes = PAIRS.codes(hashes, [pa.array(values % 3)])
    places = np.argsort(codes, kind="stable")
    weights = rng.integers(-1, 2, len(keys))
    columns = {"k": keys[places], "v": (values % 3)[places], WEIGHT: weights[places]}
    store.table(PAIRS).put(codes[places], {n: pa.array(c) for n, c in columns.items()})
    twin.pairs.update(dict(zip(((k, epoch % 3) for k in keys.tolist()), weights.tolist(), strict=True)))
    dues = rng.integers(0, 60, len(keys))
    store.timeline(TIMERS).put(dues, hashes, {"k": pa.array(keys), "v": pa.array(values)})
    entries = list(zip(dues.tolist(), keys.tolist(), strict=True))
    twin.timers.update(dict.fromkeys(entries, epoch))
    zeros, ones = np.zeros(len(keys), np.int64), np.ones(len(keys), np.int64)
    columns = {"k": pa.array(keys), "v": pa.array(zeros)}
    store.timeline(COUNTS).put(dues, _coded(hashes), {**columns, WEIGHT: pa.array(weights)})
    store.timeline(EVENTS).put(dues, _coded(hashes), {**columns, WEIGHT: pa.array(ones)})
    twin.counts.update(dict(zip(entries, weights.tolist(), strict=True)))
    twin.events.update(entries)


def _coded(hashes: Hashes) -> Hashes:
    """The codes of entries with the value 0."""
    return COUNTS.codes(hashes, [pa.array(np.zeros(len(hashes), np.int64))])


def _entries(rows: pa.Table) -> dict[tuple[int, int], int]:
    names = zip(rows["$due"].to_pylist(), rows["k"].to_pylist(), strict=True)
    entries = dict(zip(names, rows["v"].to_pylist(), strict=True))
    assert len(entries) == len(rows)
    return entries


def _assert_same(
    root: Path, state: dict[int, tuple[Slice, ...]], partitions: int, epoch: int, twin: Twin
) -> None:
    records: dict[int, int] = {}
    pairs: dict[tuple[int, int], int] = {}
    timers: dict[tuple[int, int], int] = {}
    for partition in range(partitions):
        groups = key_groups(partition, partitions)
        store = StateStore.open(str(root), "op", partition, state.get(partition), epoch + 1, groups=groups)
        mine = KEYS[partition_of(HASHES, partitions) == partition]
        mine = mine[np.argsort(HASHES[mine])]
        found = store.table(RECORDS).lookup(HASHES[mine], [pa.array(mine)])
        values = found.array("v").to_pylist()
        records |= {k: v for k, v in zip(mine.tolist(), values, strict=True) if v is not None}
        owners, rows = store.table(PAIRS).gather(HASHES[mine], [pa.array(mine)])
        weights = vector(single(rows[WEIGHT])).values.tolist()
        pairs |= dict(
            zip(zip(mine[owners].tolist(), rows["v"].to_pylist(), strict=True), weights, strict=True)
        )
        timers |= _entries(store.timeline(TIMERS).range(0, 100))
        _assert_same_entries(store, mine, twin)
    assert records == twin.records
    assert pairs == {pair: weight for pair, weight in twin.pairs.items() if weight}
    assert timers == twin.timers


def _assert_same_entries(store: StateStore, mine: Ints, twin: Twin) -> None:
    """Entries that are looked up."""
    times = np.arange(0, 60, 7)
    keys, dues = np.tile(mine, len(times)), np.repeat(times, len(mine))
    hashes = HASHES[keys]
    found = store.timeline(TIMERS).lookup(dues, hashes, [pa.array(keys)])
    entries = list(zip(dues.tolist(), keys.tolist(), strict=True))
    assert found.array("v").to_pylist() == [twin.timers.get(entry) for entry in entries]
    order = by_time_order(dues, _coded(hashes))
    columns = [pa.array(keys[order]), pa.array(np.zeros(len(keys), np.int64))]
    weights = store.timeline(COUNTS).weights(dues[order], _coded(hashes)[order], columns)
    assert weights.tolist() == [twin.counts[entries[n]] for n in order]
    rows = np.tile(np.arange(len(mine)), len(times))
    events = store.timeline(EVENTS).gather(dues, hashes, [pa.array(mine)], rows)
    expected = {entry: twin.events[entry] for entry in entries if twin.events[entry]}
    assert Counter(entries[n] for n in events.queries) == expected


def test_a_change_of_parallelism_writes_no_row_again(tmp_path: Path) -> None:
    store = StateStore.open(str(tmp_path), "op", 0, None, 1)
    order = np.argsort(HASHES)
    store.table(RECORDS).put(HASHES[order], {"k": pa.array(KEYS[order]), "v": pa.array(KEYS[order])})
    store.timeline(TIMERS).put(KEYS, HASHES, {"k": pa.array(KEYS), "v": pa.array(KEYS)})
    name = store.flush()
    assert name is not None
    runs = {f.name for f in (tmp_path / "op" / "0").glob("*.arrow")}
    assert len(runs) == 2
    fewer = order[::10]
    store = StateStore.open(str(tmp_path), "op", 0, name, 2)
    store.table(RECORDS).put(HASHES[fewer], {"k": pa.array(KEYS[fewer]), "v": pa.array(KEYS[fewer])})
    name = store.flush()
    assert name is not None
    runs = {f.name for f in (tmp_path / "op" / "0").glob("*.arrow")}
    assert len(runs) == 3
    state = resliced({0: (Slice(name, 0, KEY_GROUPS),)}, 7)
    assert [state[p] for p in range(7)] == [(Slice(name, *key_groups(p, 7)),) for p in range(7)]
    mine = KEYS[partition_of(HASHES, 7) == 3][:1]
    store = StateStore.open(str(tmp_path), "op", 3, state[3], 3, groups=key_groups(3, 7))
    store.table(RECORDS).put(HASHES[mine], {"k": pa.array(mine), "v": pa.array(mine)}, np.array([True]))
    store.table(RECORDS)
    assert store.manifest.rows < 2 * len(KEYS)
    manifest = store.flush()
    assert manifest is not None
    assert [run.rows for run in store.manifest.runs if run.path.startswith("op/3/")] == [1]
    files = StateFiles.open(str(tmp_path))
    StateCollector(files).collect({"op": {name, manifest}}, [("op", 3), ("op", 0)], 3)
    assert {f.name for f in (tmp_path / "op" / "0").glob("*.arrow")} == runs
    again = resliced({**state, 3: (Slice(manifest, *key_groups(3, 7)),)}, 1)
    whole, before = read_slices(files, again[0]), read_manifest(files, name).tables
    assert whole is not None
    tables = whole.tables
    assert tables["timers"] == before["timers"]
    assert tables["records"].layers[1:] == before["records"].layers
    assert [run.rows for run in tables["records"].layers[0]] == [1]


def test_partitions_are_ranges_of_key_groups() -> None:
    for partitions in (1, 2, 3, 7, 100, 127, 128, 1000, KEY_GROUPS):
        groups = [key_groups(p, partitions) for p in range(partitions)]
        assert groups[0][0] == 0
        assert groups[-1][1] == KEY_GROUPS
        assert all(a[1] == b[0] for a, b in pairwise(groups))
        for partition, (first, stop) in enumerate(groups):
            lo, hi = Slice("m", first, stop).hashes
            assert partition_of(np.array([lo, hi], np.uint64), partitions).tolist() == [partition] * 2
