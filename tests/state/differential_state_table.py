"""State tables against dicts: random puts and deletes, weak hashes, tiny tiers, reopened at every epoch."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.changelog.columns import Hashes, single, to_arrow
from tidemill.changelog.columns import Vec as V
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.run import WEIGHT
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

TINY = SpineOptions(fuel=6, fuel_per_row=1, slice_rows=2, calm_layers=3)
KEY, VALUE = pa.field("k", pa.string()), pa.field("v", pa.int64())
RECORDS = Layout(name="records", keys=(KEY,), columns=(VALUE,))
MULTISET = Layout(name="multiset", keys=(KEY,), values=(VALUE,), additive=True)
KEYS = ["", "a", "b", "cc", "dd", "eee", None]


def weak(keys: list[str | None]) -> Hashes:
    """Three different hashes for all keys, far apart and at the ends."""
    places = [0, 2**63, 2**64 - 1]
    return np.array([places[len(k or "") % 3] for k in keys], np.uint64)


def by_hash(keys: list[str | None]) -> tuple[Hashes, list[pa.Array], list[int]]:
    order = sorted(range(len(keys)), key=lambda i: int(weak(keys)[i]))
    ordered = [keys[i] for i in order]
    return weak(ordered), [pa.array(ordered, pa.string())], order


puts = st.dictionaries(st.sampled_from(KEYS), st.one_of(st.none(), st.integers(0, 99)), max_size=5)


@settings(max_examples=examples(30), deadline=None)
@given(epochs=st.lists(puts, min_size=1, max_size=12))
def test_newest_record_wins(epochs: list[dict[str | None, int | None]]) -> None:
    """A put of None is a deletion."""
    twin: dict[str | None, int] = {}
    manifest = None
    with TemporaryDirectory() as root:
        for epoch, put in enumerate(epochs):
            store = StateStore.open(root, "op", 3, manifest, epoch, options=TINY)
            table = store.table(RECORDS)
            hashes, keys, order = by_hash(list(put))
            values = [list(put.values())[i] for i in order]
            deleted = np.array([v is None for v in values], np.bool_)
            table.put(hashes, {"k": keys[0], "v": pa.array(values, pa.int64())}, deleted)
            twin.update({k: v for k, v in put.items() if v is not None})
            for key in [k for k, v in put.items() if v is None]:
                twin.pop(key, None)
            _assert_records(table, twin)
            manifest = store.flush()
            _assert_spine(root, manifest)
        reopened = StateStore.open(root, "op", 3, manifest, len(epochs), options=TINY)
        _assert_records(reopened.table(RECORDS), twin)


def _assert_records(table: StateTable, twin: dict[str | None, int]) -> None:
    hashes, keys, _ = by_hash([*KEYS, "unknown"])
    found = table.lookup(hashes, keys)
    names = keys[0].to_pylist()
    assert found.there.tolist() == [name in twin for name in names]
    assert found.array("v").to_pylist() == [twin.get(name) for name in names]


def _assert_spine(root: str, manifest: str | None) -> None:
    """Runs of a layer do not overlap, and every file is named as promised."""
    if manifest is None:
        return
    storage = StateStore.open(root, "op", 3, manifest, 0).storage
    for table in read_manifest(storage, manifest).tables.values():
        for layer in table.layers:
            bounds = [b for run in layer for b in (run.lo, run.hi)]
            assert bounds == sorted(bounds)
            assert all(run.rows > 0 for run in layer)
            assert all(a.hi < b.lo for a, b in pairwise(layer))
            assert all(Path(root, run.path).is_file() for run in layer)


pairs = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 3), st.integers(-2, 2)), max_size=6)


@settings(max_examples=examples(30), deadline=None)
@given(epochs=st.lists(pairs, min_size=1, max_size=12))
def test_weights_add_up(epochs: list[list[tuple[str | None, int, int]]]) -> None:
    twin: Counter[tuple[str | None, int]] = Counter()
    manifest = None
    with TemporaryDirectory() as root:
        for epoch, rows in enumerate(epochs):
            store = StateStore.open(root, "op", 3, manifest, epoch, options=TINY)
            table = store.table(MULTISET)
            net: Counter[tuple[str | None, int]] = Counter()
            for key, value, weight in rows:
                net[key, value] += weight
                twin[key, value] += weight
            _put_weights(table, net)
            _assert_weights(table, twin)
            manifest = store.flush()
            _assert_spine(root, manifest)
        _assert_weights(StateStore.open(root, "op", 3, manifest, 99).table(MULTISET), twin)


def _put_weights(table: StateTable, net: Counter[tuple[str | None, int]]) -> None:
    keys, values = [k for k, _ in net], pa.array([v for _, v in net], pa.int64())
    columns = {
        "k": pa.array(keys, pa.string()),
        "v": values,
        WEIGHT: to_arrow(V(np.array(list(net.values()), np.int64)), pa.int64()),
    }
    codes = MULTISET.codes(weak(keys), [values])
    order = np.argsort(codes, kind="stable")
    table.put(codes[order], {n: c.take(pa.array(order)) for n, c in columns.items()})


def _assert_weights(table: StateTable, twin: Counter[tuple[str | None, int]]) -> None:
    hashes, keys, _ = by_hash([*KEYS, "unknown"])
    owners, found = table.gather(hashes, keys)
    names = keys[0].take(pa.array(owners)).to_pylist()
    got = dict(
        zip(
            zip(names, found["v"].to_pylist(), strict=True),
            single(found[WEIGHT]).to_pylist(),
            strict=True,
        )
    )
    assert got == {pair: weight for pair, weight in twin.items() if weight}
    assert (np.diff(owners) >= 0).all()
    pairs_ = sorted(twin, key=lambda p: int(MULTISET.codes(weak([p[0]]), [pa.array([p[1]], pa.int64())])[0]))
    codes = MULTISET.codes(weak([k for k, _ in pairs_]), [pa.array([v for _, v in pairs_], pa.int64())])
    identity = [pa.array([k for k, _ in pairs_], pa.string()), pa.array([v for _, v in pairs_], pa.int64())]
    assert table.weights(codes, identity).tolist() == [twin[p] for p in pairs_]
