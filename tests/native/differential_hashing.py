"""Hashes of texts by the compiled core and by NumPy: equal bit by bit, as state is ordered by them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native.cores import WITH_CORE
from tests.tiers import examples
from tidemill.changelog import hashing
from tidemill.native.hashing import hash_texts


@WITH_CORE
@settings(max_examples=examples(500), deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=20),
    start=st.integers(0, 5),
)
def test_as_numpy_has_them(values: list[bytes | None], start: int) -> None:
    array = pa.array(values, pa.binary()).slice(start)
    found = hash_texts(array)
    if not len(array):
        return
    assert found is not None
    valid = np.array([v is not None for v in array.to_pylist()])
    assert (found == hashing._hash_words(array, wide=False))[valid].all()
    column = hashing.hash_column(array)
    assert (column[valid] == found[valid]).all()
    assert set(column[~valid].tolist()) <= {int(hashing._NULL)}
