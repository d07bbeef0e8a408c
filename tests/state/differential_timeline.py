"""Tables by time against dicts: random puts, deletes and takings, weak hashes, tiny tiers, reopened often."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.changelog.columns import Hashes, Ints, single
from tidemill.state.cleanup import StateCollector
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.run import WEIGHT, RunReader, due_code
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order, due_times

TINY = SpineOptions(fuel=6, fuel_per_row=1, slice_rows=2, calm_layers=3, slice_bytes=200)
NO_MERGES = SpineOptions(fuel=0, ratio=0)
KEY, VALUE = pa.field("k", pa.string()), pa.field("v", pa.int64())
TIMERS = Layout(name="timers", keys=(KEY,), columns=(VALUE,), by_time=True)
PAIRS = Layout(name="pairs", keys=(KEY,), values=(VALUE,), additive=True, by_time=True)
EVENTS = Layout(
    name="events",
    keys=(KEY,),
    values=(VALUE, pa.field("s", pa.string())),
    additive=True,
    by_time=True,
    growing=True,
)
KEYS = ["", "a", "b", "cc", "dd", "eee", None]
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
TIMES = [FIRST, -1, 0, 1, 2, 3, 50, 51, 52, LAST]

Entry = tuple[int, str | None]


def weak(keys: list[str | None]) -> Hashes:
    places = [0, 2**63, 2**64 - 1]
    return np.array([places[len(k or "") % 3] for k in keys], np.uint64)


def asked(entries: list[Entry]) -> tuple[Ints, Hashes, list[pa.Array], list[Entry]]:
    """Entries as queries, in their order."""
    dues = np.array([due for due, _ in entries], np.int64)
    order = by_time_order(dues, weak([k for _, k in entries]))
    entries = [entries[i] for i in order]
    names = [k for _, k in entries]
    return dues[order], weak(names), [pa.array(names, pa.string())], entries


entry = st.tuples(st.sampled_from(TIMES), st.sampled_from(KEYS))
puts = st.dictionaries(entry, st.one_of(st.none(), st.integers(0, 99)), max_size=6)
epoch_ = st.tuples(st.lists(puts, max_size=3), st.one_of(st.none(), st.sampled_from(TIMES)))


@settings(max_examples=examples(60), deadline=None)
@given(epochs=st.lists(epoch_, min_size=1, max_size=10))
def test_what_is_due_is_taken_once(epochs: list[tuple[list[dict[Entry, int | None]], int | None]]) -> None:
    """A put of None is a deletion."""
    twin: dict[Entry, int] = {}
    manifest = None
    with TemporaryDirectory() as root:
        for number, (batches, due) in enumerate(epochs):
            store = StateStore.open(root, "op", 0, manifest, number, options=TINY)
            table = store.timeline(TIMERS)
            for put in batches:
                _put(table, put)
                twin.update({e: v for e, v in put.items() if v is not None})
                for gone in [e for e, v in put.items() if v is None]:
                    twin.pop(gone, None)
            _assert_same(table, twin)
            if due is not None:
                taken = table.take_due(due)
                assert _entries(taken) == {e: v for e, v in twin.items() if e[0] <= due}
                assert due_times(taken).tolist() == sorted(due_times(taken).tolist())
                twin = {e: v for e, v in twin.items() if e[0] > due}
                assert len(table.take_due(due)) == 0
            _assert_same(table, twin)
            manifest = store.flush()
            if manifest is not None:
                StateCollector(StateFiles.open(root)).sweep([manifest])
                _assert_spine(root, manifest)
        _assert_same(StateStore.open(root, "op", 0, manifest, 99).timeline(TIMERS), twin)


def _put(table: TimeTable, put: dict[Entry, int | None]) -> None:
    names = [k for _, k in put]
    columns = {"k": pa.array(names, pa.string()), "v": pa.array(list(put.values()), pa.int64())}
    deleted = np.array([v is None for v in put.values()], np.bool_)
    table.put(np.array([due for due, _ in put], np.int64), weak(names), columns, deleted)


def _entries(rows: pa.Table) -> dict[Entry, int]:
    names = rows["k"].to_pylist()
    entries = dict(zip(zip(due_times(rows).tolist(), names, strict=True), rows["v"].to_pylist(), strict=True))
    assert len(entries) == len(rows)
    return entries


def _assert_same(table: TimeTable, twin: dict[Entry, int]) -> None:
    dues, hashes, keys, entries = asked([(due, key) for due in TIMES for key in KEYS])
    found = table.lookup(dues, hashes, keys)
    assert found.there.tolist() == [e in twin for e in entries]
    assert found.array("v").to_pylist() == [twin.get(e) for e in entries]
    assert _entries(table.range(FIRST, LAST)) == twin
    assert _entries(table.range(0, 50)) == {e: v for e, v in twin.items() if 0 <= e[0] <= 50}
    earliest = table.earliest()
    if twin:
        assert earliest is not None
        assert earliest <= min(due for due, _ in twin)


def _assert_spine(root: str, manifest: str) -> None:
    files = StateFiles.open(root)
    for entry_ in read_manifest(files, manifest).tables.values():
        for layer in entry_.layers:
            bounds = [b for run in layer for b in (run.lo, run.hi)]
            assert bounds == sorted(bounds)
            for run in layer:
                assert run.rows > 0
                reader = RunReader.of_run(files, run)
                assert (reader.code(0), reader.code(reader.rows - 1)) == (run.lo, run.hi)


weighted = st.lists(
    st.tuples(st.sampled_from(TIMES), st.sampled_from(KEYS), st.integers(0, 2), st.integers(-2, 2)),
    max_size=6,
)


@settings(max_examples=examples(40), deadline=None)
@given(epochs=st.lists(st.tuples(weighted, st.sampled_from(TIMES)), min_size=1, max_size=10))
def test_weights_add_up_until_they_are_due(
    epochs: list[tuple[list[tuple[int, str | None, int, int]], int]],
) -> None:
    twin: Counter[tuple[int, str | None, int]] = Counter()
    manifest = None
    with TemporaryDirectory() as root:
        for number, (rows, due) in enumerate(epochs):
            store = StateStore.open(root, "op", 0, manifest, number, options=TINY)
            table = store.timeline(PAIRS)
            net: Counter[tuple[int, str | None, int]] = Counter()
            for time, key, value, weight in rows:
                net[time, key, value] += weight
            twin.update(net)
            names, values = [k for _, k, _ in net], pa.array([v for _, _, v in net], pa.int64())
            columns = {"k": pa.array(names, pa.string()), "v": values, WEIGHT: pa.array(list(net.values()))}
            dues = np.array([t for t, _, _ in net], np.int64)
            if net:
                table.put(dues, PAIRS.codes(weak(names), [values]), columns)
            taken = table.take_due(due)
            found = zip(
                due_times(taken).tolist(), taken["k"].to_pylist(), taken["v"].to_pylist(), strict=True
            )
            weights = single(taken[WEIGHT]).to_pylist()
            assert dict(zip(found, weights, strict=True)) == {
                e: w for e, w in twin.items() if w and e[0] <= due
            }
            twin = Counter({e: w for e, w in twin.items() if e[0] > due})
            manifest = store.flush()


event = st.tuples(st.sampled_from(TIMES), st.sampled_from(KEYS), st.integers(0, 3))


@settings(max_examples=examples(60), deadline=None)
@given(
    epochs=st.lists(st.tuples(st.lists(event, max_size=8), st.sampled_from(TIMES)), max_size=10),
    queries=st.lists(entry, max_size=90),
)
def test_what_only_comes_is_gathered_by_time_and_key(
    epochs: list[tuple[list[tuple[int, str | None, int]], int]], queries: list[Entry]
) -> None:
    """Equal rows stand side by side; a query may be asked twice."""
    twin: list[tuple[int, str | None, int]] = []
    manifest = None
    with TemporaryDirectory() as root:
        for number, (rows, due) in enumerate(epochs):
            store = StateStore.open(root, "op", 0, manifest, number, options=TINY)
            table = store.timeline(EVENTS)
            names, values = [k for _, k, _ in rows], pa.array([v for _, _, v in rows], pa.int64())
            columns = {"k": pa.array(names, pa.string()), "v": values, "s": values.cast(pa.string())}
            columns[WEIGHT] = pa.array([1] * len(rows), pa.int64())
            codes = EVENTS.codes(weak(names), [values])
            table.put(np.array([t for t, _, _ in rows], np.int64), codes, columns)
            twin += rows
            _assert_gathers(table, twin, queries)
            table.forget_due(due)
            twin = [row for row in twin if row[0] > due]
            _assert_gathers(table, twin, queries)
            manifest = store.flush()


def _assert_gathers(table: TimeTable, twin: list[tuple[int, str | None, int]], queries: list[Entry]) -> None:
    dues, hashes, _, entries = asked(queries)
    distinct = sorted({k for _, k in entries}, key=str)
    places = np.array([distinct.index(k) for _, k in entries], np.int64)
    names = [pa.array(distinct, pa.string())]
    found = table.gather(dues, hashes, names, places)
    with patch("tidemill.state.lookup._FEW_TIMES", 0):
        # As where there are many times.
        assert table.gather(dues, hashes, names, places).queries.tolist() == found.queries.tolist()
    got = Counter(
        zip(
            found.queries.tolist(),
            found.column("k").to_pylist(),
            found.ints("v").tolist(),
            found.column("s").to_pylist(),
            strict=True,
        )
    )
    wanted = Counter(
        (i, k, v, str(v)) for i, (t, k) in enumerate(entries) for due, key, v in twin if (due, key) == (t, k)
    )
    assert got == wanted
    odd = found.where(found.ints("v") % 2 == 1)
    assert odd.queries.tolist() == [q for q, v in zip(found.queries, found.ints("v"), strict=True) if v % 2]


def test_taking_what_is_due_costs_only_that(tmp_path: Path) -> None:
    """Nothing is written again, files that are used up go, and runs of later times are not opened."""
    manifest = None
    for epoch, first in enumerate((0, 10_000, 20_000)):
        store = StateStore.open(
            str(tmp_path), "op", 0, manifest, epoch, options=SpineOptions(fuel=0, ratio=0)
        )
        dues = np.arange(first, first + 5_000)
        names = pa.array([str(d) for d in dues])
        store.timeline(TIMERS).put(dues, weak(names.to_pylist()), {"k": names, "v": pa.array(dues)})
        manifest = store.flush()
    before = {p.name for p in (tmp_path / "op" / "0").glob("*.arrow")}
    assert len(before) == 3
    (tmp_path / "op" / "0" / "2.0.0.0.arrow").rename(tmp_path / "away")
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 3, options=NO_MERGES)
    table = store.timeline(TIMERS)
    assert table.earliest() == 0
    assert len(table.take_due(12_499)) == 7_500
    assert table.earliest() == 12_500
    after = store.flush()
    assert after is not None
    runs = list(read_manifest(store.storage, after).runs)
    assert sorted((run.path, run.rows) for run in runs) == [
        ("op/0/1.0.0.0.arrow", 2_500),
        ("op/0/2.0.0.0.arrow", 5_000),
    ]
    assert {p.name for p in (tmp_path / "op" / "0").glob("*.arrow")} == before - {"2.0.0.0.arrow"}


def test_one_time_of_many_keys_is_merged_slice_by_slice(tmp_path: Path) -> None:
    """All entries of a window are due at once: its merge stops between keys."""
    options = SpineOptions(fuel=2_000, fuel_per_row=2, slice_rows=200)
    manifest, keys = None, np.arange(20_000)
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
    newest = np.full(20_000, -1)
    for epoch in range(40):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, options=options)
        touched = keys if epoch == 0 else rng.choice(keys, 300, replace=False)
        newest[touched] = epoch
        columns = {"k": pa.array(touched).cast(pa.string()), "v": pa.array(np.full(len(touched), epoch))}
        store.timeline(TIMERS).put(np.full(len(touched), 7), hashes[touched], columns)
        manifest = store.flush()
        if epoch:
            written = (tmp_path / "op" / "0").glob(f"{epoch}.*.arrow")
            assert sum(pa.ipc.open_file(str(f)).read_all().num_rows for f in written) <= 4_000
    table = StateStore.open(str(tmp_path), "op", 0, manifest, 40).timeline(TIMERS)
    taken = table.take_due(7)
    values = dict(zip(taken["k"].to_pylist(), taken["v"].to_pylist(), strict=True))
    assert values == {str(k): int(newest[k]) for k in keys}
    assert table.rows.all == []
    assert due_code(7) < due_code(8)
