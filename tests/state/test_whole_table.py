"""State tables read by their manifests alone: versions combine as the operator would combine them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns
from tidemill.errors import StateError
from tidemill.state.arrow_names import arrow_named
from tidemill.state.layout import Layout
from tidemill.state.manifest import Manifest, read_manifest
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.slices import KEY_GROUPS, Slice
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.whole_table import live_rows

LAZY = SpineOptions(lazy_layers=8)
"""Epochs stay layers of their own."""
KEY, NUMBER = pa.field("k", pa.string()), pa.field("v", pa.int64())


class State:
    """One partition of an operator, epoch by epoch."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self.root, self.layout = str(root), layout
        self.manifest: str | None = None
        self.epoch = 0

    def put(self, rows: list[dict[str, Any]], *, deleted: bool = False, now: int = 0) -> None:
        self.epoch += 1
        store = StateStore.open(self.root, "op-1", 0, self.manifest, self.epoch, now=now, options=LAZY)
        columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
        keys = [columns[f.name].cast(f.type) for f in self.layout.keys]
        values = [columns[f.name].cast(f.type) for f in self.layout.coded]
        codes = self.layout.codes(hash_columns(keys, len(rows)), values)
        gone = np.ones(len(rows), np.bool_) if deleted else None
        if self.layout.by_time:
            dues = np.array(columns.pop(DUE))
            store.timeline(self.layout).put(dues, codes, columns, gone)
        else:
            store.table(self.layout).put(codes, columns, gone)
        self.manifest = store.flush()

    def read(self, now: int = 0) -> list[tuple[Any, ...]]:
        """Without hashes and marks of deletion."""
        assert self.manifest is not None
        files = StateFiles.open(self.root, "the savepoint 'x'")
        pieces = live_rows(files, (Slice(self.manifest, 0, KEY_GROUPS),), self.layout.name, now)
        names = [n for n in self.layout.schema.names if n not in ("$hash", "$deleted", "$time")]
        found = [row for piece in pieces for row in piece.select(names).to_pylist()]
        return sorted((tuple(row.values()) for row in found), key=str)

    def forget_shapes(self) -> None:
        """As a Tidemill wrote it that had none."""
        assert self.manifest is not None
        old = read_manifest(StateFiles.open(self.root), self.manifest)
        tables = {name: replace(entry, shape=None) for name, entry in old.tables.items()}
        data = Manifest(epoch=old.epoch, groups=old.groups, tables=tables).to_bytes()
        (Path(self.root) / self.manifest).write_bytes(data)


def test_of_records_the_newest_counts_and_none_that_is_deleted(tmp_path: Path) -> None:
    state = State(tmp_path, Layout(name="t", keys=(KEY,), columns=(NUMBER,)))
    state.put([{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": None, "v": 3}])
    state.put([{"k": "a", "v": 7}])
    state.put([{"k": "b", "v": 2}], deleted=True)
    assert state.read() == [("a", 7), (None, 3)]


@pytest.mark.parametrize("growing", [False, True])
def test_weights_of_a_multiset_add(tmp_path: Path, growing: bool) -> None:
    layout = Layout(name="t", keys=(KEY,), values=(NUMBER,), additive=True, growing=growing)
    state = State(tmp_path, layout)
    state.put([{"k": "a", "v": 1, WEIGHT: 2}, {"k": "a", "v": 2, WEIGHT: 1}])
    state.put([{"k": "a", "v": 1, WEIGHT: 3}, {"k": "a", "v": 2, WEIGHT: -1}])
    assert state.read() == [("a", 1, 5)]


def test_of_rows_by_time_the_time_tells_them_apart(tmp_path: Path) -> None:
    state = State(tmp_path, Layout(name="t", keys=(KEY,), columns=(NUMBER,), by_time=True))
    state.put([{DUE: 5, "k": "a", "v": 1}, {DUE: 9, "k": "a", "v": 2}])
    state.put([{DUE: 9, "k": "a", "v": 3}])
    assert state.read() == [(5, "a", 1), (9, "a", 3)]


def test_what_has_expired_is_not_there(tmp_path: Path) -> None:
    """Nor what was there before it."""
    state = State(tmp_path, Layout(name="t", keys=(KEY,), columns=(NUMBER,), ttl=10))
    state.put([{"k": "a", "v": 1}, {"k": "b", "v": 1}], now=0)
    state.put([{"k": "a", "v": 2}], now=5)
    assert state.read(now=12) == [("a", 2)]
    assert state.read(now=15) == []


def test_without_a_shape_nothing_is_combined(tmp_path: Path) -> None:
    """A manifest of before says nothing of keys."""
    state = State(tmp_path, Layout(name="t", keys=(KEY,), columns=(NUMBER,)))
    state.put([{"k": "a", "v": 1}, {"k": "b", "v": 2}])
    state.forget_shapes()
    assert state.read() == [("a", 1), ("b", 2)]
    state.put([{"k": "a", "v": 3}])
    state.forget_shapes()
    with pytest.raises(StateError, match="table 't' does not say which columns are its keys"):
        state.read()


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.bool_(),
        pa.date32(),
        pa.null(),
        pa.timestamp("us"),
        pa.timestamp("us", tz="UTC"),
        pa.decimal128(38, 18),
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())])),
        pa.struct([("a b", pa.list_(pa.int64())), pa.field("c", pa.string(), nullable=False)]),
    ],
    ids=str,
)
def test_types_are_read_from_their_texts(kind: pa.DataType) -> None:
    assert arrow_named(f"{kind} 2") == arrow_named(str(kind)) == kind
    with pytest.raises(ValueError, match="No type alias"):
        arrow_named("nosuch")
