"""Merges are bounded in bytes, and expired rows go without a look at those that live."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import mix
from tidemill.errors import StateError
from tidemill.state import merge
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.run import Run
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

TEXTS = Layout(name="t", keys=(pa.field("k", pa.int64()),), columns=(pa.field("v", pa.string()),))
PAIRS = Layout(
    name="t", keys=(pa.field("k", pa.int64()),), values=(pa.field("v", pa.string()),), additive=True
)


def put(store: StateStore, layout: Layout, keys: list[int], values: list[str]) -> None:
    hashes = mix(np.array(keys, np.uint64))
    order = np.argsort(hashes, kind="stable")
    columns = {"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.string())}
    store.table(layout).put(hashes[order], {n: c.take(pa.array(order)) for n, c in columns.items()})


def runs(store: StateStore, manifest: str | None) -> list[list[Run]]:
    assert manifest is not None
    return [list(layer) for layer in read_manifest(store.storage, manifest).tables["t"].layers]


def values(
    root: Path, manifest: str | None, layout: Layout, keys: list[int], now: int = 0
) -> list[str | None]:
    hashes = mix(np.array(keys, np.uint64))
    order = np.argsort(hashes, kind="stable")
    table = StateStore.open(str(root), "op", 0, manifest, 99, now=now).table(layout)
    found = table.lookup(hashes[order], [pa.array(keys, pa.int64()).take(pa.array(order))])
    by_key = dict(zip(order.tolist(), found.array("v").to_pylist(), strict=True))
    return [by_key[i] for i in range(len(keys))]


def test_a_merge_of_much_text_is_cut_into_runs(tmp_path: Path) -> None:
    options = SpineOptions(slice_bytes=10_000)
    manifest, keys = None, list(range(100))
    for epoch in range(3):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, options=options)
        put(store, TEXTS, keys, [f"{epoch} {'x' * 1000}"] * 100)
        manifest = store.flush()
    (layer,) = runs(store, manifest)
    # 300 kB went in, no more than 10 kB at once.
    assert len(layer) >= 15
    assert sum(run.rows for run in layer) == 100
    assert all(a.hi < b.lo for a, b in pairwise(layer))
    assert values(tmp_path, manifest, TEXTS, keys) == [f"2 {'x' * 1000}"] * 100


def test_wide_rows_use_up_an_epochs_fuel(tmp_path: Path) -> None:
    """A row of ten kilobytes counts as ten: the big layer is not merged in one epoch."""
    options = SpineOptions(fuel=200, fuel_per_row=1, slice_rows=10)
    store = StateStore.open(str(tmp_path), "op", 0, None, 0, options=options)
    put(store, TEXTS, list(range(150)), ["x" * 10_000] * 150)
    base = store.flush()
    store = StateStore.open(str(tmp_path), "op", 0, base, 1, options=options)
    put(store, TEXTS, list(range(0, 150, 2)), ["y" * 10_000] * 75)
    manifest = store.flush()
    written = [run for layer in runs(store, manifest) for run in layer if run.path.startswith("op/0/1.")]
    assert sum(run.file_rows for run in written) <= 75 + 30
    assert values(tmp_path, manifest, TEXTS, [0, 1]) == ["y" * 10_000, "x" * 10_000]


def test_more_text_of_one_key_than_a_column_holds_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "_OFFSETS", 5_000)
    options = SpineOptions(slice_bytes=2_000)
    manifest = None
    for epoch in range(2):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, options=options)
        columns = {"k": pa.array([1, 1]), "v": pa.array([f"{epoch}{i}" * 800 for i in range(2)])}
        store.table(PAIRS).put(np.array([7, 7], np.uint64), {**columns, "$weight": pa.array([1, 1])})
        if epoch == 0:
            manifest = store.flush()
    with pytest.raises(
        StateError, match=r"State table 't': one key has \d+ bytes of rows; the limit is 5000"
    ):
        store.flush()


def ttl_layout(ttl: int) -> Layout:
    return Layout(name="t", keys=TEXTS.keys, columns=TEXTS.columns, ttl=ttl)


def test_runs_whose_last_row_has_expired_are_dropped_unread(tmp_path: Path) -> None:
    layout, options = ttl_layout(10), SpineOptions(ratio=0)
    manifest = None
    for epoch, now in enumerate((0, 1, 8)):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, now=now, options=options)
        put(store, layout, [epoch], [str(epoch)])
        manifest = store.flush()
    assert len(runs(store, manifest)) == 3
    for run in (tmp_path / "op" / "0").glob("[01].0.*.arrow"):
        run.unlink()
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 3, now=12, options=options)
    store.table(layout)
    manifest = store.flush()
    assert [[run.path for run in layer] for layer in runs(store, manifest)] == [["op/0/2.0.0.0.arrow"]]
    assert values(tmp_path, manifest, layout, [0, 1, 2], now=12) == [None, None, "2"]


def test_a_run_of_which_half_has_expired_is_written_again(tmp_path: Path) -> None:
    """However few keys are touched, at most about twice what lives is kept; each epoch within its fuel."""
    layout, options = ttl_layout(100), SpineOptions(fuel=40, fuel_per_row=1, slice_rows=5)
    store = StateStore.open(str(tmp_path), "op", 0, None, 0, now=0)
    put(store, layout, list(range(360)), ["old"] * 360)
    manifest = store.flush()
    store = StateStore.open(str(tmp_path), "op", 0, manifest, 1, now=50)
    put(store, layout, list(range(180)), ["new"] * 180)
    manifest = store.flush()
    (layer,) = runs(store, manifest)
    assert layer[0].written == (0, 50)
    sizes = []
    for epoch in range(2, 14):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, epoch, now=110, options=options)
        store.table(layout)
        manifest = store.flush()
        written = (tmp_path / "op" / "0").glob(f"{epoch}.*.arrow")
        assert sum(pa.ipc.open_file(str(f)).read_all().num_rows for f in written) <= 40
        sizes.append(store.manifest.rows)
    assert sizes[0] > 310
    assert sizes[-1] == 180
    assert values(tmp_path, manifest, layout, [0, 179, 180, 359], now=110) == ["new", "new", None, None]
