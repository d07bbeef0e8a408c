"""Distinct values that keys share against sets, wherever epochs are cut, whatever was combined."""

from __future__ import annotations

import tempfile
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import NONE
from tidemill.operators.shared_distinct.operator import SharedDistinctSpec
from tidemill.operators.shared_distinct.shared_keys import Grouping, SharedKeys
from tidemill.state.store import StateStore

CHANNELS = (*"abcdefghij", *map(str, range(60)))
NUMBERS = (3, 1)
PAIRS = tuple((c, n) for c in CHANNELS for n in NUMBERS)
Row = tuple[str | None, str, int, float | None]
"""The key that is kept, two that are known, the value."""
COUNT = st.sampled_from([0.0, -0.0, 1.0, float("nan"), None])
rows_ = st.lists(
    st.tuples(st.sampled_from(["x", "", None]), st.sampled_from("aj9"), st.sampled_from(NUMBERS), COUNT),
    max_size=40,
)


def spec_of(width: int, *, sets: bool) -> SharedDistinctSpec:
    """By (channel, number); with ``sets`` also by (channel), and by neither."""
    by_pair = Grouping(columns=("c", "n"), values=PAIRS, numbers=tuple(range(len(PAIRS))))
    known: list[tuple[object, object]] = list(PAIRS)
    groupings = [by_pair]
    if sets:
        places = tuple(range(len(known), len(known) + len(CHANNELS)))
        groupings.append(Grouping(columns=("c",), values=tuple((c,) for c in CHANNELS), numbers=places))
        groupings.append(Grouping(columns=(), values=((),), numbers=(places[-1] + 1,)))
        known += [*((c, None) for c in CHANNELS), (None, None)]
    shared = SharedKeys(
        kept=(("k", pa.string()),),
        value=("v", pa.float64()),
        known=tuple(zip(*known, strict=True)),
        shown=((("n", pa.int32()), 1), (("k", pa.string()), 2), (("c", pa.string()), 0)),
        groupings=tuple(groupings),
        width=width,
    )
    return SharedDistinctSpec(shared=shared, number="new")


def table_of(rows: list[Row]) -> pa.Table:
    kept, channels, numbers, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [pa.array(kept, pa.string()), pa.array(values, pa.float64())]
    return pa.table(
        {
            "k": columns[0],
            "c": pa.array(channels, pa.string()),
            "n": pa.array(numbers, pa.int32()),
            "v": columns[1],
            "$hash": pa.array(hash_columns(columns, len(rows))),
        }
    )


def naive(rows: list[Row], *, sets: bool) -> dict[tuple[object, ...], int]:
    """How many values each key has: zeros of two signs, and one that is no number."""
    found: dict[tuple[object, ...], set[str]] = {}
    for kept, channel, number, value in rows:
        keys: list[tuple[object, ...]] = [(number, kept, channel)]
        keys += [(None, kept, channel), (None, kept, None)] * sets
        for key in keys:
            found.setdefault(key, set()).update(() if value is None else (str(value),))
    return {key: len(values) for key, values in found.items()}


@pytest.mark.parametrize("sets", [False, True], ids=["keys", "sets"])
@pytest.mark.parametrize("width", [8, 16, 64])
@settings(max_examples=examples(60), deadline=None)
@given(rows=rows_, cuts=st.lists(st.integers(0, 40), max_size=5), combines=st.integers(0, 63))
def test_as_sets(width: int, sets: bool, rows: list[Row], cuts: list[int], combines: int) -> None:
    """Of each epoch the first half is combined, or the second, or none, or both."""
    spec = spec_of(width, sets=sets)
    found: Counter[tuple[object, ...]] = Counter()
    shown: set[tuple[object, ...]] = set()
    with tempfile.TemporaryDirectory() as root:
        kernel = TimedEpochs(root, spec)
        for epoch, (first, behind) in enumerate(pieces(len(rows), cuts)):
            half = (first + behind) // 2
            parts = [table_of(rows[first:half]), table_of(rows[half:behind])]
            chosen = [bool(combines >> (epoch + place) & 1) for place in (0, 1)]
            raw = [part for part, combine in zip(parts, chosen, strict=True) if not combine]
            combined = [
                spec.combine(p) for p, combine in zip(parts, chosen, strict=True) if combine and len(p)
            ]
            used, table = spec.merged(raw, combined) if combined else (spec, table_of(rows[first:behind]))
            kernel.spec = used
            output = kernel.step(table, mark=NONE)
            for *key, number in zip(*(column.to_pylist() for column in output.columns), strict=True):
                found[tuple(key)] += number
                shown.add(tuple(key))
    expected = naive(rows, sets=sets)
    assert shown == expected.keys()
    assert +found == +Counter(expected)


def test_a_value_of_one_key_has_one_entry() -> None:
    """Whatever the number of keys; of all keys one for each word."""
    spec = spec_of(8, sets=False)
    one: list[Row] = [("x", "a", 3, 1.0)]
    each: list[Row] = [("x", c, n, 1.0) for c, n in PAIRS]
    with tempfile.TemporaryDirectory() as root:
        for rows, entries in ((one * 3, 1), (each, -(-len(PAIRS) // 8))):
            kernel = TimedEpochs(f"{root}/{entries}", spec)
            output = kernel.step(table_of(rows), mark=NONE)
            assert sum(output.column("new").to_pylist()) == len(set(rows))
            assert _entries(kernel, spec) == entries
            assert len(kernel.step(table_of(rows), mark=NONE)) == 0
            assert _entries(kernel, spec) == entries


def _entries(kernel: TimedEpochs, spec: SharedDistinctSpec) -> int:
    store = StateStore.open(kernel.root, "op", 0, kernel.manifest, kernel.number)
    return len(store.table(spec.layout).everything())
