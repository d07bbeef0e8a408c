"""What the spine promises about work: bounded per epoch, few layers, everything merged in the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns, mix
from tidemill.errors import StateError
from tidemill.state.layers import GROWING_LAYERS
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.run import WEIGHT
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

NUMBERS = Layout(name="numbers", keys=(pa.field("k", pa.int64()),), columns=(pa.field("v", pa.int64()),))
OPTIONS = SpineOptions(fuel=2_000, fuel_per_row=2, slice_rows=200)


def put(store: StateStore, keys: np.ndarray[tuple[int], np.dtype[np.int64]], value: int) -> None:
    hashes = mix(keys.astype(np.uint64))
    order = np.argsort(hashes)
    columns = {"k": pa.array(keys[order]), "v": pa.array(np.full(len(keys), value))}
    store.table(NUMBERS).put(hashes[order], columns)


def written(root: Path, epoch: int) -> int:
    """Rows in the run files of an epoch."""
    return sum(pa.ipc.open_file(str(f)).read_all().num_rows for f in root.rglob(f"{epoch}.*.arrow"))


def test_small_epochs_never_pay_for_a_large_state(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    manifest, most = None, 0
    twin = np.full(50_000, -1)
    for epoch in range(60):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, options=OPTIONS)
        keys = np.arange(50_000) if epoch == 0 else rng.choice(50_000, 500, replace=False)
        put(store, keys, epoch)
        twin[keys] = epoch
        manifest = store.flush()
        if epoch:
            most = max(most, written(tmp_path, epoch))
    assert most <= OPTIONS.budget(500, 20) + 500
    assert manifest is not None
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 60)
    layers = read_manifest(store.storage, manifest).tables["numbers"].layers
    assert len(layers) <= 12
    hashes = mix(np.arange(50_000).astype(np.uint64))
    order = np.argsort(hashes)
    found = store.table(NUMBERS).lookup(hashes[order], [pa.array(np.arange(50_000)[order])])
    assert found.there.all()
    assert (found.vec("v").values == twin[order]).all()


def test_an_epoch_that_touches_everything_rewrites_everything(tmp_path: Path) -> None:
    manifest = None
    for epoch in range(3):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch)
        put(store, np.arange(1_000), epoch)
        manifest = store.flush()
    assert manifest is not None
    layers = read_manifest(store.storage, manifest).tables["numbers"].layers
    assert [[run.rows for run in layer] for layer in layers] == [[1_000]]
    assert [(run.min_epoch, run.max_epoch) for layer in layers for run in layer] == [(0, 2)]


def test_an_epoch_without_changes_keeps_the_manifest(tmp_path: Path) -> None:
    store = StateStore.open(str(tmp_path), "op", 0, None, 0)
    assert store.flush() is None
    put(store, np.arange(3), 0)
    manifest = store.flush()
    assert manifest == "op/0/0.0.manifest.json"
    again = StateStore.open(str(tmp_path), "op", 0, manifest, 1)
    again.table(NUMBERS).lookup(np.zeros(1, np.uint64), [pa.array([0])])
    assert again.flush() == manifest


def test_no_attempt_overwrites_another(tmp_path: Path) -> None:
    """A task that outlives its epoch writes beside the one that took its place: the same rows."""
    contents = []
    for attempt in ("a", "b"):
        store = StateStore.open(str(tmp_path), "op", 0, None, 7, attempt=attempt)
        put(store, np.arange(100), 1)
        assert store.flush() == f"op/0/7.{attempt}.manifest.json"
        contents.append((tmp_path / "op" / "0" / f"7.{attempt}.0.0.arrow").read_bytes())
    assert contents[0] == contents[1]
    again = StateStore.open(str(tmp_path), "op", 0, None, 7, attempt="a")
    put(again, np.arange(50), 2)
    with pytest.raises(StateError, match="File exists"):
        again.flush()
    assert (tmp_path / "op" / "0" / "7.a.0.0.arrow").read_bytes() == contents[0]


def test_expired_records_read_as_absent_and_vanish_in_merges(tmp_path: Path) -> None:
    layout = Layout(name="numbers", keys=NUMBERS.keys, columns=NUMBERS.columns, ttl=10)
    manifest = None
    for epoch, (now, key) in enumerate([(0, 1), (5, 2), (12, 3)]):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, now=now)
        hashes = mix(np.array([key], np.uint64))
        store.table(layout).put(hashes, {"k": pa.array([key]), "v": pa.array([key])})
        manifest = store.flush()
    keys = np.array([1, 2, 3])
    order = np.argsort(mix(keys.astype(np.uint64)))
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 3, now=14)
    found = store.table(layout).lookup(mix(keys.astype(np.uint64))[order], [pa.array(keys[order])])
    assert dict(zip(keys[order].tolist(), found.there.tolist(), strict=True)) == {1: False, 2: True, 3: True}
    assert manifest is not None
    assert read_manifest(store.storage, manifest).rows == 2
    later = StateStore.open(str(tmp_path), "op", 0, manifest, 4, now=15)
    assert not later.table(layout).lookup(mix(np.array([2], np.uint64)), [pa.array([2])]).there.any()


def test_a_column_that_a_run_predates_reads_as_null(tmp_path: Path) -> None:
    store = StateStore.open(str(tmp_path), "op", 0, None, 0)
    put(store, np.arange(2), 5)
    manifest = store.flush()
    wider = Layout(
        name="numbers", keys=NUMBERS.keys, columns=(*NUMBERS.columns, pa.field("new", pa.string()))
    )
    hashes = mix(np.arange(2).astype(np.uint64))
    order = np.argsort(hashes)
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 1)
    table = store.table(wider)
    found = table.lookup(hashes[order], [pa.array(np.arange(2)[order])])
    assert found.array("v").to_pylist() == [5, 5]
    assert found.array("new").to_pylist() == [None, None]
    first = hashes[:1]
    table.put(first, {"k": pa.array([0]), "v": pa.array([6]), "new": pa.array(["x"])})
    manifest = store.flush()
    table = StateStore.open(str(tmp_path), "op", 0, manifest, 2).table(wider)
    found = table.lookup(hashes[order], [pa.array(np.arange(2)[order])])
    assert dict(zip(order.tolist(), found.array("new").to_pylist(), strict=True)) == {0: "x", 1: None}


def test_a_growing_table_keeps_every_row_in_few_layers(tmp_path: Path) -> None:
    """Equal rows stay apart, also through merges; only the cheapest neighbours are merged."""
    layout = Layout(
        name="growing",
        keys=(pa.field("k", pa.int64()),),
        values=(pa.field("v", pa.int64()),),
        additive=True,
        growing=True,
    )
    manifest, rng = None, np.random.default_rng(5)
    expected: list[tuple[int, int]] = []
    for epoch in range(30):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch)
        keys, values = np.sort(rng.integers(0, 20, 50)), rng.integers(0, 3, 50)
        codes = layout.codes(hash_columns([pa.array(keys)], 50), [pa.array(values)])
        order = np.argsort(codes, kind="stable")
        columns = {"k": pa.array(keys[order]), "v": pa.array(values[order]), WEIGHT: pa.array([1] * 50)}
        store.table(layout).put(codes[order], columns)
        manifest = store.flush()
        expected += zip(keys.tolist(), values.tolist(), strict=True)
    table = StateStore.open(str(tmp_path), "op", 0, manifest, 30).table(layout)
    assert 2 <= len(table.layers) <= GROWING_LAYERS
    wanted = pa.array(range(20), pa.int64())
    hashes = hash_columns([wanted], 20)
    ascending = np.argsort(hashes)
    owners, rows = table.pieces(hashes[ascending], [wanted.take(pa.array(ascending))])
    assert [ascending[o] for o in owners] == rows.column("k").to_pylist()
    assert sorted(zip(*(rows.column(n).to_pylist() for n in "kv"), strict=True)) == sorted(expected)
