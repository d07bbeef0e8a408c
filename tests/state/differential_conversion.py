"""Rows whose value columns change are, in whatever runs and partitions they lie, the rows without the columns
that went, with NULL in those that came."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.columns import Ints
from tidemill.changelog.hashing import hash_columns
from tidemill.errors import StateError
from tidemill.state.growing_types import grows
from tidemill.state.layout import Layout
from tidemill.state.run import DELETED, WEIGHT
from tidemill.state.slices import KEY_GROUPS, Slice
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.whole_table import live_rows

KEY = pa.field("k", pa.int64())
VALUES = {name: pa.field(name, pa.string() if name == "c" else pa.int64()) for name in "abcd"}
Row = dict[str, Any]


def layout(names: str, late: str = "", **said: Any) -> Layout:
    values = tuple(VALUES[name] for name in sorted(names))
    return Layout(name="t", keys=(KEY,), values=values, evolves=True, late=tuple(late), **said)


def column(rows: list[Row], field: pa.Field) -> pa.Array:
    return pa.array([row.get(field.name) for row in rows], field.type)


def codes(shape: Layout, rows: list[Row]) -> np.ndarray[Any, Any]:
    keys = hash_columns([column(rows, KEY)], len(rows))
    return shape.codes(keys, [column(rows, f) for f in shape.coded])


def put(store: StateStore, shape: Layout, rows: list[Row], weights: Ints) -> None:
    columns = {f.name: column(rows, f) for f in (KEY, *shape.values)}
    columns[WEIGHT] = pa.array(weights)
    if shape.by_time:
        dues = np.array([row["due"] for row in rows], np.int64)
        store.timeline(shape).put(dues, codes(shape, rows), columns)
    else:
        store.table(shape).put(codes(shape, rows), columns)


def held(store: StateStore, shape: Layout) -> Counter[tuple[Any, ...]]:
    if shape.by_time:
        table = store.timeline(shape).range(0, 100)
    else:
        keys = pa.array(sorted(range(6), key=lambda k: int(hash_columns([pa.array([k])], 1)[0])))
        owners, table = store.table(shape).pieces(hash_columns([keys], 6), [keys])
        table = table.drop_columns(["k"]).append_column("k", keys.take(pa.array(owners)))
    found = Counter[tuple[Any, ...]]()
    for row in table.to_pylist():
        due = (row["$due"],) if shape.by_time else ()
        found[(*due, row["k"], *(row[f.name] for f in shape.values))] += row[WEIGHT]
    return Counter({row: count for row, count in found.items() if count})


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("family", ["multiset", "growing", "by time"])
def test_rows_become_those_of_the_query_that_reads_them(tmp_path: Path, family: str, seed: int) -> None:
    chance = random.Random(seed)
    said: dict[str, Any] = {"additive": True, "growing": family != "multiset", "by_time": family == "by time"}
    options = SpineOptions(slice_bytes=200)
    names, seen = "ab", Counter[tuple[Any, ...]]()
    base: str | None = None
    for epoch in range(1, 9):
        before = names
        if epoch % 2 == 0:
            names = "".join(chance.sample("abcd", chance.randrange(1, 5)))
        late = "".join(set(names) - set(before))
        shape = layout(names, late, **said)
        store = StateStore.open(str(tmp_path), "o", 0, base, epoch, options=options)
        due = ("due",) if shape.by_time else ()
        gone = Counter[tuple[Any, ...]]()
        for held_row, count in seen.items():
            own = dict(zip((*due, "k", *sorted(before)), held_row, strict=True))
            gone[(*(own[d] for d in due), own["k"], *(own.get(f.name) for f in shape.values))] += count
        seen = gone
        rows = [
            {
                "due": chance.randrange(9),
                "k": chance.randrange(6),
                "c": chance.choice("xy"),
                **{n: chance.choice([None, 1, 2]) for n in "abd"},
            }
            for _ in range(20)
        ]
        if chance.random() < 0.8:
            put(store, shape, rows, np.ones(20, np.int64))
            for row in rows:
                seen[(*(row[d] for d in due), row["k"], *(row[f.name] for f in shape.values))] += 1
        assert held(store, shape) == seen
        base = store.flush()
        assert held(StateStore.open(str(tmp_path), "o", 0, base, epoch + 1), shape) == seen


@pytest.mark.parametrize("by_time", [False, True])
def test_partitions_that_were_left_by_different_queries_come_together(tmp_path: Path, by_time: bool) -> None:
    said: dict[str, Any] = {"additive": True, "by_time": by_time}
    middle = KEY_GROUPS // 2
    rows = [{"k": k, "a": 1, "b": 2, "d": 3, "due": k} for k in range(6)]
    upper = codes(layout("", **said), rows) >= np.uint64(1 << 63)
    slices = []
    for number, names in enumerate(("ab", "abd")):
        own = [row for row, is_upper in zip(rows, upper, strict=True) if is_upper == bool(number)]
        assert own
        groups = (number * middle, middle + number * middle)
        store = StateStore.open(str(tmp_path), "o", number, None, 1, groups=groups)
        put(store, layout(names, **said), own, np.ones(len(own), np.int64))
        slices.append(Slice(store.flush() or "", *groups))
    store = StateStore.open(str(tmp_path), "o", 0, slices, 2)
    shape = layout("abd", "d", **said)
    wanted = {row["k"]: 3 if is_upper else None for row, is_upper in zip(rows, upper, strict=True)}
    for state in (store, StateStore.open(str(tmp_path), "o", 0, store.flush() or slices, 3)):
        assert {row[-4]: row[-1] for row in held(state, shape)} == wanted
        found = store.table(shape).weights if not by_time else None
        if found is not None:
            order = np.argsort(codes(shape, [{**r, "d": wanted[r["k"]]} for r in rows]))
            asked = [{**rows[i], "d": wanted[rows[i]["k"]]} for i in order]
            weights = found(codes(shape, asked), [column(asked, f) for f in (KEY, *shape.values)])
            assert weights.tolist() == [1] * 6, "they lie where they are looked for"


@pytest.mark.parametrize("pair", [("int8", "int64"), ("float32", "float64")])
@pytest.mark.parametrize("turned", [False, True])
def test_partitions_of_narrow_and_wide_types_come_together(
    tmp_path: Path, pair: tuple[str, str], turned: bool
) -> None:
    middle, rows = KEY_GROUPS // 2, [{"k": k, "a": k, "n": k} for k in range(6)]
    slices = []
    for number, kind in enumerate(reversed(pair) if turned else pair):
        groups = (number * middle, middle + number * middle)
        own = [row for row in rows if (int(codes(typed(kind), [row])[0]) >= 1 << 63) == bool(number)]
        assert own
        store = StateStore.open(str(tmp_path), "o", number, None, 1, groups=groups)
        columns = {f.name: column(own, f) for f in (*typed(kind).keys, *typed(kind).values)}
        columns["n"] = column(own, typed(kind).columns[0])
        store.table(typed(kind)).put(codes(typed(kind), own), columns)
        slices.append(Slice(store.flush() or "", *groups))
    read = live_rows(StateFiles.open(str(tmp_path), "o"), slices, "t", 0)
    assert sorted(row["n"] for piece in read for row in piece.to_pylist()) == [*range(6)]
    wide = typed(pair[1])
    store = StateStore.open(str(tmp_path), "o", 0, slices, 2)
    for state in (store, StateStore.open(str(tmp_path), "o", 0, store.flush() or slices, 3)):
        asked = sorted(rows, key=lambda row: int(codes(wide, [row])[0]))
        identity = [column(asked, f) for f in (*wide.keys, *wide.values)]
        found = state.table(wide).lookup(codes(wide, asked), identity)
        assert found.array("n").to_pylist() == [row["n"] for row in asked]
        assert found.array("n").type == wide.columns[0].type
        for piece in (reader.table for layer in state.table(wide).rows.all for reader in layer):
            assert [piece.column(n).type for n in "kn"] == [wide.keys[0].type, wide.columns[0].type]


def typed(kind: str) -> Layout:
    """Records of a key and a value, both of the type, as the payload is; keys are whole numbers."""
    kinds = {"k": kind if kind.startswith("int") else "int64", "a": kind, "n": kind}
    fields = [pa.field(name, pa.type_for_alias(kinds[name])) for name in "kan"]
    return Layout(name="t", keys=(fields[0],), values=(fields[1],), columns=(fields[2],))


@pytest.mark.parametrize("values", [False, True])
def test_rows_stay_where_a_shared_exchange_has_sent_them(tmp_path: Path, values: bool) -> None:
    """Its hash is not that of all keys."""
    rows = [{"k": k, "a": k, "n": k} for k in range(6)]
    sent = hash_columns([pa.array([row["k"] % 2 for row in rows])], 6)
    base: str | None = None
    for epoch, kind in enumerate(("int16", "int64"), 1):
        shape = typed(kind) if values else replace(typed(kind), values=())
        identity = [column(rows, f) for f in shape.identity]
        lie = shape.codes(sent, identity[1:])
        order = np.argsort(lie, kind="stable")
        store = StateStore.open(str(tmp_path), "o", 0, base, epoch)
        if base is None:
            found = dict(zip((f.name for f in shape.identity), identity, strict=True))
            store.table(shape).put(lie, {**found, "n": column(rows, shape.columns[0])})
            base = store.flush()
        asked = [column.take(pa.array(order)) for column in identity]
        found_rows = store.table(shape).lookup(lie[order], asked).array("n").to_pylist()
        assert found_rows == [rows[i]["n"] for i in order]


def test_a_type_that_does_not_grow_is_refused(tmp_path: Path) -> None:
    store = StateStore.open(str(tmp_path), "o", 0, None, 1)
    shape = typed("int32")
    row = [{"k": 1, "a": 1, "n": 1}]
    identity = {f.name: column(row, f) for f in (*shape.keys, *shape.values, *shape.columns)}
    store.table(shape).put(codes(shape, row), identity)
    base = store.flush()
    for kind in ("int16", "float64", "uint64"):
        with pytest.raises(
            StateError, match=f"is int32, the query needs {kind.replace('float64', 'double')}"
        ):
            StateStore.open(str(tmp_path), "o", 0, base, 2).table(typed(kind))


def test_a_key_does_not_grow_to_a_type_of_other_hashes(tmp_path: Path) -> None:
    def shape(kind: pa.DataType) -> Layout:
        return Layout(name="t", keys=(pa.field("k", kind),), columns=(pa.field("n", pa.int64()),))

    store = StateStore.open(str(tmp_path), "o", 0, None, 1)
    keys = pa.array([0.5], pa.float32())
    store.table(shape(keys.type)).put(hash_columns([keys], 1), {"k": keys, "n": pa.array([1])})
    base = store.flush()
    with pytest.raises(StateError, match="column 'k' of its table 't' is float, the query needs double"):
        StateStore.open(str(tmp_path), "o", 0, base, 2).table(shape(pa.float64()))


def test_what_grows_keeps_its_hashes() -> None:
    types = [*(pa.type_for_alias(f"int{bits}") for bits in (8, 16, 32, 64))]
    types += [pa.decimal128(digits, scale) for scale in (0, 2) for digits in (4, 18, 19, 38)]
    types += [pa.float32(), pa.float64(), pa.string(), pa.date32(), pa.bool_(), pa.uint8()]
    pairs = [(a, b) for a in types for b in types if grows(str(a), str(b))]
    keys = [(a, b) for a, b in pairs if grows(str(a), str(b), key=True)]
    assert len(keys) == 3 * (3 + 2 + 1)
    scales = [(a.precision, b.precision) for a, b in pairs if pa.types.is_decimal(a) and a.scale != b.scale]
    assert scales == [(4, 18), (4, 19), (4, 38), (18, 38), (19, 38), (38, 38)]
    assert len(pairs) == len([*keys, *scales, (pa.float32(), pa.float64())])
    for a, b in keys:
        for values in ([None, 0, 1, 99, -99], [5]):
            narrow = pa.array(values, a)
            assert hash_columns([narrow], len(values)).tolist() == (
                hash_columns([narrow.cast(b)], len(values)).tolist()
            )


def test_records_that_are_one_now_are_there_as_often_as_they_were(tmp_path: Path) -> None:
    columns = (pa.field("$count", pa.int64()), pa.field("$matches", pa.int64()))
    said: dict[str, Any] = {"columns": columns, "ttl": 100, "counts": "$count"}
    base: str | None = None
    for epoch, (b, count, now, gone) in enumerate(
        [(1, 2, 10, False), (2, 3, 20, False), (3, 9, 30, True)], 1
    ):
        shape = layout("ab", **said)
        store = StateStore.open(str(tmp_path), "o", 0, base, epoch, now=now)
        row = [{"k": 1, "a": 5, "b": b, "$count": count, "$matches": b}]
        store.table(shape).put(
            codes(shape, row),
            {f.name: column(row, f) for f in (KEY, *shape.values, *columns)},
            np.array([gone]),
        )
        base = store.flush()
    shape = layout("a", **said)
    for now, found in ((109, [(5, 5, 2)]), (115, [(5, 3, 2)]), (121, [])):
        store = StateStore.open(str(tmp_path), "o", 0, base, 4, now=now)
        table = store.table(shape).everything()
        assert [(r["a"], r["$count"], r["$matches"]) for r in table.to_pylist()] == found
        assert not any(table.column(DELETED).to_pylist())
        assert [r["$time"] for r in table.to_pylist()] == [20] * len(found)


def test_rows_keep_their_order_of_arrival(tmp_path: Path) -> None:
    sequence = pa.field("$seq", pa.int64())
    wide = replace(layout("ab", additive=True), values=(sequence, VALUES["a"], VALUES["b"]), arrival="$seq")
    narrow = replace(wide, values=(sequence, VALUES["b"]))
    rows = [{"k": 1, "a": i, "b": 100 * i, "$seq": s} for i, s in enumerate([7, 7, 7, 5, 9])]
    store = StateStore.open(str(tmp_path), "o", 0, None, 1)
    put(store, wide, rows, np.ones(5, np.int64))
    store = StateStore.open(str(tmp_path), "o", 0, store.flush(), 2)
    found = sorted(store.table(narrow).everything().to_pylist(), key=lambda row: row["$seq"])
    contents = hash_columns([column(rows, VALUES["a"]), column(rows, VALUES["b"])], 5)
    tied = sorted((0, 1, 2), key=lambda i: int(contents[i]))
    assert [row["b"] for row in found] == [300, *(100 * i for i in tied), 400]
    assert len({row["$seq"] for row in found}) == 5


def test_a_column_that_rows_cannot_do_without_is_missed(tmp_path: Path) -> None:
    store = StateStore.open(str(tmp_path), "o", 0, None, 1)
    put(store, layout("a", additive=True), [{"k": 1, "a": 1}], np.ones(1, np.int64))
    store = StateStore.open(str(tmp_path), "o", 0, store.flush(), 2)
    with pytest.raises(StateError, match="column 'b' of its table 't' is missing"):
        store.table(layout("ab", additive=True))
    with pytest.raises(StateError, match="kept by k, the query needs it by j"):
        StateStore.open(str(tmp_path), "o", 0, store.base, 2).table(
            replace(layout("a", additive=True), keys=(pa.field("j", pa.int64()),))
        )
