"""Grouping: equal keys together in input order, unequal ones apart, whichever way the rows are sorted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.columns import Hashes
from tidemill.changelog.grouping import group_rows, sort_order
from tidemill.changelog.hashing import mix

N = 9_000


def hashes_of(name: str) -> Hashes:
    """Inputs that take each way of sorting."""
    rng = np.random.default_rng(3)
    spread = mix(rng.integers(0, N, N).astype(np.uint64))
    few = mix(rng.integers(0, 7, N).astype(np.uint64))
    pieces = np.concatenate([np.sort(spread[: N // 2]), np.sort(spread[N // 2 :])])
    alike_above = rng.integers(0, 50, N).astype(np.uint64)
    return {"spread": spread, "few": few, "pieces": pieces, "alike above": alike_above, "short": spread[:50]}[
        name
    ]


WAYS = ["spread", "few", "pieces", "alike above", "short"]


@pytest.mark.parametrize("way", WAYS)
def test_sort_order_is_the_stable_one(way: str) -> None:
    hashes = hashes_of(way)
    assert sort_order(hashes).tolist() == np.argsort(hashes, kind="stable").tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("colliding", [False, True])
def test_groups_are_runs_of_equal_keys(way: str, colliding: bool) -> None:
    hashes = hashes_of(way)
    keys = hashes % np.uint64(97) if colliding else hashes
    # Equal keys must hash alike: where keys are coarser than hashes, group by the keys' own order.
    given = mix(keys) if colliding else hashes
    if colliding:
        given = given & np.uint64(7)
    groups = group_rows(given, [pa.array(keys)])
    ids = groups.ids()
    assert sorted(groups.order.tolist()) == list(range(len(keys)))
    assert (np.diff(given[groups.order].astype(np.float64)) >= 0).all()
    ordered = keys[groups.order]
    assert (ordered == keys[groups.heads][ids]).all()
    assert len(set(keys[groups.heads].tolist())) == groups.count
    inside = ids[1:] == ids[:-1]
    assert (np.diff(groups.order)[inside] > 0).all()


def test_no_rows_no_groups() -> None:
    groups = group_rows(np.zeros(0, np.uint64), [pa.array([], pa.int64())])
    assert groups.count == 0


def test_without_keys_all_rows_are_one_group() -> None:
    groups = group_rows(np.full(3, 5, np.uint64), [])
    assert groups.starts.tolist() == [0]
    assert groups.sizes.tolist() == [3]
