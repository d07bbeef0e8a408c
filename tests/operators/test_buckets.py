"""Rows of hot keys in all buckets: what counts is in one of them, what must be known in each."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.buckets import TELLS, Everywhere

COUNT = 5


def everywhere(*sets: tuple[str, ...]) -> Everywhere:
    return Everywhere(
        column="$bucket", keys=("k", "$bucket"), sets=sets, with_first=("n",), flags=("g",), count=COUNT
    )


def rows(size: int) -> pa.Table:
    rng = random.Random(7)
    return pa.table(
        {
            "k": pa.array([rng.choice("abc") for _ in range(size)]),
            "x": pa.array([rng.choice([None, 0.0, -0.0, float("nan"), 1.5]) for _ in range(size)]),
            "y": pa.array([rng.choice([None, "", "u", "v" * 300]) for _ in range(size)]),
            "n": pa.array([rng.choice([None, place]) for place in range(size)]),
            "g": pa.array([rng.choice([None, True, False]) for _ in range(size)]),
            "place": pa.array(range(size)),
        }
    )


def hashed(table: pa.Table, names: tuple[str, ...]) -> pa.Array:
    return pa.array(hash_columns([table.column(name) for name in names], len(table)))


def sent(buckets: Everywhere, table: pa.Table) -> pa.Table:
    table = buckets.added(table)
    return table.append_column(HASH_COLUMN, hashed(table, buckets.keys))


def values(table: pa.Table, names: tuple[str, ...]) -> list[str]:
    """What rows have in these columns, where it is not NULL in all."""
    found = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return [repr(row) for row in found if any(value is not None for value in row)]


def there(table: pa.Table, name: str) -> list[object]:
    """What is neither NULL nor false."""
    return [value for value in table.column(name).to_pylist() if value is not None and value is not False]


def test_nothing_is_hot_at_first() -> None:
    buckets = everywhere(("x",))
    table = sent(buckets, rows(50))
    others, hot = buckets.parted(table)
    assert others is table
    assert len(hot) == 0
    assert set(table.column("$bucket").to_pylist()) == {0}


def test_hot_keys_are_told_by_their_hashes() -> None:
    buckets = everywhere(("x",))
    table = sent(buckets, rows(50))
    of = dict(zip(table.column("k").to_pylist(), table.column(HASH_COLUMN).to_pylist(), strict=True))
    others, hot = replace(buckets, hot=(of["a"], of["c"])).parted(table)
    assert set(others.column("k").to_pylist()) == {"b"}
    assert set(hot.column("k").to_pylist()) == {"a", "c"}
    assert len(others) + len(hot) == 50


@pytest.mark.parametrize("sets", [(("x",),), (("x",), ("y",))])
def test_each_value_is_in_one_bucket_and_each_row_in_all(sets: tuple[tuple[str, ...], ...]) -> None:
    buckets, table = everywhere(*sets), rows(200)
    copied = buckets.copied(sent(buckets, table))
    assert copied.column(HASH_COLUMN).to_pylist() == hashed(copied, buckets.keys).to_pylist()
    numbers = np.array(copied.column("$bucket").to_pylist())
    by_bucket = [copied.filter(pa.array(numbers == bucket)) for bucket in range(COUNT)]
    for part in by_bucket:
        assert set(part.column("place").to_pylist()) == set(range(200))
    assert Counter(by_bucket[0].column("place").to_pylist()) == Counter(range(200)), "a row is one there"
    for names in sets:
        where: dict[str, set[int]] = {}
        for bucket, part in enumerate(by_bucket):
            for text in values(part, names):
                where.setdefault(text, set()).add(bucket)
        assert all(len(found) == 1 for found in where.values())
        assert Counter(values(copied, names)) == Counter(values(table, names))
    for name in ("g", "n"):
        assert Counter(there(copied, name)) == Counter(there(table, name))


def test_what_tells_no_more_is_only_where_it_counts() -> None:
    buckets, table = everywhere(("x",)), rows(60)
    tells = [place % 10 == 0 for place in range(60)]
    copied = buckets.copied(sent(buckets, table).append_column(TELLS, pa.array(tells)))
    assert TELLS not in copied.column_names
    places = Counter(copied.column("place").to_pylist())
    for place in range(60):
        assert places[place] >= COUNT if tells[place] else places[place] == 1
    assert copied.column("$bucket").to_pylist() == sorted(copied.column("$bucket").to_pylist())
