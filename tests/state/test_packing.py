"""Packed columns: the same values in fewer bytes, found where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.changelog.columns import Hashes, single
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.values import same_at
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.window.store.first_slice_distinct import FirstSliceDistinct
from tidemill.state.due_times import due_times_of
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.packing import packed, taken, unpacked, unpacked_bytes
from tidemill.state.spine import SpineOptions
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
TEXTS = (pa.string(), pa.binary())
DAY, MINUTE = 1_714_521_600_000, 60_000
AT = pa.field("at", pa.int64())
EDGES = [0, 1, -1, 2, *(s * (1 << b) + d for b in (7, 15, 31) for s in (1, -1) for d in (-1, 0, 1))]


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from((*INTEGERS, *TEXTS)))
    if pa.types.is_integer(kind):
        end = 1 << (kind.bit_width - 1)
        few = [e for e in EDGES if -end <= e < end]
        value = st.sampled_from([*few, -end, end - 1])
    else:
        value = st.sampled_from(["", "a", "bb", "ä"]).map(lambda t: t if kind == pa.string() else t.encode())
    chosen = draw(st.lists(value, min_size=1, max_size=4))
    values = draw(st.lists(st.sampled_from([None, *chosen]), min_size=1, max_size=40))
    array = pa.array(values, kind)
    return array.slice(draw(st.integers(0, len(array) - 1)))


@given(column=columns(), data=st.data())
def test_values_stay(column: pa.Array, data: st.DataObject) -> None:
    table = pa.table({"c": column})
    stored = packed(table, (), 1)
    assert unpacked(stored).equals(table)
    assert stored.column("c").cast(column.type).combine_chunks().to_pylist() == column.to_pylist()
    rows = np.array(data.draw(st.lists(st.integers(0, len(column) - 1), max_size=9)), np.int64)
    one = single(stored.column("c"))
    assert taken(stored.schema.field("c"), one, rows).equals(column.take(pa.array(rows)))
    order = np.arange(len(column))
    others = data.draw(st.permutations(list(order)))
    expected = [column[i].as_py() == column[j].as_py() for i, j in enumerate(others)]
    assert same_at(one, order, column, np.array(others, np.int64)).tolist() == expected


@given(
    base=st.sampled_from([0, 1, -1, *EDGES, 1 << 62, -(1 << 63), 1_714_521_600_000]),
    step=st.sampled_from([1, 7, 60_000, 1 << 40]),
    steps=st.lists(st.none() | st.sampled_from([0, 1, 2, 127, 128, 1439, 1 << 31]), min_size=1, max_size=40),
    data=st.data(),
)
def test_steps_from_a_base_stay(base: int, step: int, steps: list[int | None], data: st.DataObject) -> None:
    """Also where the distance of two values has more than 63 bits."""
    values = [None if n is None else (base + n * step + (1 << 63)) % (1 << 64) - (1 << 63) for n in steps]
    column = pa.array(values, pa.int64())
    column = column.slice(data.draw(st.integers(0, len(column) - 1)))
    table = pa.table({"c": column})
    stored = packed(table, (), 1, payload=("c",))
    assert unpacked(stored).equals(table)
    rows = np.array(data.draw(st.lists(st.integers(0, len(column) - 1), max_size=9)), np.int64)
    taken_rows = taken(stored.schema.field("c"), single(stored.column("c")), rows)
    assert taken_rows.equals(column.take(pa.array(rows)))


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        ([DAY, DAY + MINUTE, None, DAY + 127 * MINUTE], pa.int8()),
        ([DAY, DAY + MINUTE, DAY + 1439 * MINUTE], pa.int16()),
        ([DAY, DAY + 1, DAY + 1439 * MINUTE], pa.int32()),
        ([DAY, DAY, DAY], pa.bool_()),
        ([DAY, 0, 1], pa.int64()),
        ([1, 60, 120], pa.int8()),
        ([DAY + n * MINUTE for n in range(5_000)] + [DAY + 1], pa.int32()),
    ],
)
def test_numbers_that_nothing_compares_are_steps(values: list[int | None], stored: pa.DataType) -> None:
    """The sample of the last one proposes a minute, which does not divide every distance."""
    table = pa.table({"c": pa.array(values, pa.int64()), "compared": pa.array(values, pa.int64())})
    schema = packed(table, (), 1, payload=("c",)).schema
    assert schema.field("c").type == stored
    assert schema.field("compared").type == (pa.int8() if max(v or 0 for v in values) < DAY else pa.int64())


@given(times=st.lists(st.sampled_from([-(1 << 63), -1, 0, 5, 9, (1 << 63) - 1]), min_size=1), data=st.data())
def test_due_times_are_found_where_each_is_there_once(times: list[int], data: st.DataObject) -> None:
    table = pa.table({"$due": pa.array(sorted(times), pa.int64()), "rest": ["a" * 9] * len(times)})
    stored = packed(table, ("rest",), 0.01, order="$due")
    start = data.draw(st.integers(0, len(times) - 1))
    part = slice(start, data.draw(st.integers(start + 1, len(times))))
    expected = np.array(sorted(times)[part], np.int64)
    dues = due_times_of(single(stored.slice(start, len(expected)).column("$due")))
    assert dues.take(np.arange(len(expected))).tolist() == expected.tolist()
    sought = np.array([*EDGES, min(times), max(times)], np.int64)
    first, after = dues.ranges(sought)
    assert first.tolist() == np.searchsorted(expected, sought, "left").tolist()
    assert after.tolist() == np.searchsorted(expected, sought, "right").tolist()
    assert unpacked(stored).equals(table)


def test_a_due_time_is_there_once_if_rows_share_it() -> None:
    dues = {"few": np.arange(1_000) // 100, "many": np.arange(1_000)}
    kinds = [
        packed(pa.table({"$due": d, "t": ["a" * 99] * 1_000}), (), 1, order="$due").schema.field("$due").type
        for d in dues.values()
    ]
    assert list(map(pa.types.is_run_end_encoded, kinds)) == [True, False]


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        ([0, 1, None], pa.int64(), pa.bool_()),
        ([0, 2, -128], pa.int64(), pa.int8()),
        ([128, 0, 0], pa.int32(), pa.int16()),
        ([1 << 31, 0, 0], pa.int64(), pa.int64()),
        ([-(1 << 31), 5, 5], pa.int64(), pa.int32()),
        (["a"] * 8, pa.string(), pa.dictionary(pa.int8(), pa.string())),
        (["a", "b", "c", "d"], pa.string(), pa.string()),
        ([f"{i % 129}" for i in range(129 * 4)], pa.string(), pa.dictionary(pa.int16(), pa.string())),
        ([1.0, 1.0], pa.float64(), pa.float64()),
        ([1, 1], pa.timestamp("ms"), pa.timestamp("ms")),
        ([1, 1], pa.uint64(), pa.uint64()),
    ],
)
def test_the_least_type_that_holds_all(values: list[object], kind: pa.DataType, stored: pa.DataType) -> None:
    table = pa.table({"c": pa.array(values, kind), "plain": pa.array(values, kind)})
    schema = packed(table, ("plain",), 1).schema
    assert (schema.field("c").type, schema.field("plain").type) == (stored, kind)


def test_a_key_whose_values_are_neighbours_is_seen_to_repeat() -> None:
    """Of many keys a sample of rows far apart has each key once."""
    keys = pa.array([f"key {n // 60}" for n in range(600_000)], pa.string())
    once = pa.array([f"text {n}" for n in range(600_000)], pa.string())
    schema = packed(pa.table({"key": keys, "once": once}), (), 1).schema
    assert schema.field("key").type == pa.dictionary(pa.int16(), pa.string())
    assert schema.field("once").type == pa.string()


def test_bytes_count_as_before_packing() -> None:
    """Merges are bounded by what they widen, not by what files hold."""
    table = pa.table({"t": ["x" * 1000] * 5000, "n": pa.array([1] * 5000, pa.int64())})
    stored = packed(table, (), 1)
    assert stored.nbytes < table.nbytes / 100
    assert unpacked_bytes(stored) == pytest.approx(table.nbytes, rel=0.01)


LAYOUT = Layout(
    name="t",
    keys=(pa.field("channel", pa.string()), pa.field("day", pa.int64())),
    values=(pa.field("$value0", pa.int64()),),
    columns=(pa.field("count", pa.int64()), pa.field("note", pa.string())),
)
ROWS = 1 << 15


def _put(root: Path, base: str | None, epoch: int, numbers: list[int], options: SpineOptions) -> str:
    store = StateStore.open(str(root), "op", 0, base, epoch, options=options)
    codes, identity, order = _identity(numbers)
    names = [f.name for f in LAYOUT.identity]
    counts = pa.array([(numbers[i] + epoch) * 3 for i in order], pa.int64())
    notes = pa.array([f"epoch {epoch}"] * len(numbers), pa.string())
    columns = {**dict(zip(names, identity, strict=True)), "count": counts, "note": notes}
    store.table(LAYOUT).put(codes, columns)
    manifest = store.flush()
    assert manifest is not None
    return manifest


def _identity(numbers: list[int]) -> tuple[Hashes, list[pa.Array], list[int]]:
    columns = [
        pa.array([f"channel {n % 50}" for n in numbers], pa.string()),
        pa.array([n % 7 for n in numbers], pa.int64()),
        pa.array(numbers, pa.int64()),
    ]
    codes = LAYOUT.codes(hash_columns(columns[:2], len(numbers)), columns[2:])
    order = np.argsort(codes, kind="stable")
    picks = pa.array(order)
    return codes[order], [c.take(picks) for c in columns], order.tolist()


def _size(root: Path, manifest: str) -> int:
    return read_manifest(StateFiles.open(str(root)), manifest).size


def test_packed_and_plain_runs_are_one_table(tmp_path: Path) -> None:
    """An older epoch wrote plain runs, later ones pack theirs: lookups, gathering and merges see both."""
    plain = SpineOptions(packed_rows=1 << 40)
    base = _put(tmp_path, None, 0, list(range(ROWS)), plain)
    base = _put(
        tmp_path, base, 1, list(range(0, ROWS, 3)), SpineOptions(packed_rows=1, packed_gain=1, fuel=0)
    )
    base = _put(
        tmp_path, base, 2, list(range(0, ROWS, 5)), SpineOptions(packed_rows=1, packed_gain=1, fuel=0)
    )

    def newest(n: int) -> int:
        return 2 if n % 5 == 0 else 1 if n % 3 == 0 else 0

    for options in (SpineOptions(packed_rows=1, packed_gain=1, fuel=0), SpineOptions()):
        table = StateStore.open(str(tmp_path), "op", 0, base, 3, options=options).table(LAYOUT)
        codes, identity, order = _identity(list(range(ROWS + 9)))
        found = table.lookup(codes, identity)
        assert found.there.tolist() == [n < ROWS for n in order]
        wanted = [(n + newest(n)) * 3 if n < ROWS else None for n in order]
        assert found.vec("count").values.dtype == np.int64
        assert found.array("count").to_pylist() == wanted
        assert found.array("note").to_pylist() == [f"epoch {newest(n)}" if n < ROWS else None for n in order]
        rows = table.everything()
        assert rows.schema.equals(LAYOUT.schema)
        assert dict(zip(rows["$value0"].to_pylist(), rows["count"].to_pylist(), strict=True)) == {
            n: (n + newest(n)) * 3 for n in range(ROWS)
        }


def test_one_packed_run_that_answers_everything_widens_its_numbers(tmp_path: Path) -> None:
    base = _put(tmp_path, None, 0, list(range(ROWS)), SpineOptions(packed_gain=2))
    table = StateStore.open(str(tmp_path), "op", 0, base, 1).table(LAYOUT)
    codes, identity, _ = _identity([1, 2, 3])
    found = table.lookup(codes, identity)
    assert found.complete
    assert (found.vec("count").values * 1_000_000_000).tolist() == [3 * 10**9 * n for n in _sorted(identity)]


def _sorted(identity: list[pa.Array]) -> list[int]:
    numbers: list[int] = identity[2].to_pylist()
    return numbers


def test_state_is_smaller_where_that_gains_enough(tmp_path: Path) -> None:
    sizes = {
        gain: _size(tmp_path / str(gain), _put(tmp_path / str(gain), None, 0, list(range(ROWS)), options))
        for gain, options in ((gain, SpineOptions(packed_gain=gain)) for gain in (2, 4))
    }
    assert sizes[2] * 2.5 < sizes[4]


def test_presence_is_packed_for_a_smaller_gain(tmp_path: Path) -> None:
    """A row is its code, a number and no tombstone: 16 bytes, and 10 of them packed."""
    value = pa.field("$value0", pa.int64())
    layouts = (
        Layout(name="values", keys=(), values=(value,)),
        Layout(name="counts", keys=(value,)),
    )
    assert [layout.says_presence for layout in layouts] == [True, False]
    sizes = []
    for layout in layouts:
        store = StateStore.open(str(tmp_path / layout.name), "op", 0, None, 0)
        numbers = pa.array(np.arange(ROWS) % (1 << 15), pa.int64())
        codes = layout.codes(hash_columns([] if layout.values else [numbers], ROWS), [numbers])
        order = np.argsort(codes, kind="stable")
        store.table(layout).put(codes[order], {"$value0": numbers.take(pa.array(order))})
        manifest = store.flush()
        assert manifest is not None
        sizes.append(_size(tmp_path / layout.name, manifest))
    assert sizes[0] < 0.7 * sizes[1]


def test_the_first_slices_of_values_take_little(tmp_path: Path) -> None:
    """Five columns of 8 bytes: the hash stays, the end is there once, the bucket takes one byte,
    the value four and the minute two."""
    spec = GroupAggregateSpec(
        keys=(("$end", pa.int64()), ("bucket", pa.int64())),
        calls=(
            AggregateSpec(
                function="COUNT",
                args=("user",),
                arg_types=(pa.int64(),),
                result=pa.int64(),
                name="n",
                distinct=True,
            ),
        ),
    )
    (view,) = FirstSliceDistinct(group=spec, keys=(("bucket", pa.int64()),)).views.values()
    layout = view.layout((pa.field("bucket", pa.int64()),))
    users = pa.array(np.arange(ROWS) * 1000, pa.int64())
    buckets = pa.array(np.arange(ROWS) % 64, pa.int64())
    firsts = pa.array(DAY + np.arange(ROWS) % 1440 * MINUTE, pa.int64())
    store = StateStore.open(str(tmp_path), "op", 0, None, 0)
    codes = layout.codes(hash_columns([buckets], ROWS), [users])
    ends = np.full(ROWS, DAY + 1440 * MINUTE)
    store.timeline(layout).put(ends, codes, {"bucket": buckets, "$value0": users, "$first": firsts})
    manifest = store.flush()
    assert manifest is not None
    assert 15 * ROWS < _size(tmp_path, manifest) < 16 * ROWS


@pytest.mark.parametrize("times", [3, 500])
@pytest.mark.parametrize("gain", [None, 0.1])
def test_many_times_are_looked_up(tmp_path: Path, gain: float | None, times: int) -> None:
    """Queries of few times and of many are searched in two ways, in plain runs and in packed ones."""
    layout = Layout(name="t", keys=(pa.field("k", pa.int64()),), columns=(AT,), by_time=True)
    options = SpineOptions(packed_rows=1 << 40) if gain is None else SpineOptions(packed_gain=gain)
    keys = np.arange(ROWS)
    dues, held = DAY + keys * 7 % times, pa.array(DAY + keys * MINUTE)
    store = StateStore.open(str(tmp_path), "op", 0, None, 0, options=options)
    hashes = hash_columns([pa.array(keys)], ROWS)
    store.timeline(layout).put(dues, hashes, {"k": pa.array(keys), "at": held})
    manifest = store.flush()
    table = StateStore.open(str(tmp_path), "op", 0, manifest, 1, options=options).timeline(layout)
    sought = np.concatenate([dues[::2], dues[1::2] + 1])
    wanted = np.concatenate([keys[::2], keys[1::2]])
    hashes = hash_columns([pa.array(wanted)], ROWS)
    order = by_time_order(sought, hashes)
    found = table.lookup(sought[order], hashes[order], [pa.array(wanted[order])])
    expected = [DAY + k * MINUTE if k % 2 == 0 else None for k in wanted[order].tolist()]
    assert found.array("at").to_pylist() == expected


def test_a_few_rows_stay_plain(tmp_path: Path) -> None:
    """They are merged soon, and a small epoch shall not pay for packing."""
    one, other = SpineOptions(packed_gain=1), SpineOptions(packed_rows=1 << 40)
    sizes = {
        _size(tmp_path / str(n), _put(tmp_path / str(n), None, 0, list(range(5_000)), options))
        for n, options in enumerate((one, other))
    }
    assert len(sizes) == 1
