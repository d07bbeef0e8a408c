"""What an epoch says it wrote, by the tokens of its sinks."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidemill.operators.api import HASH_COLUMN
from tidemill.runtime.progress import rows_of
from tidemill.runtime.spark.exchange import Received


@pytest.mark.parametrize(
    ("token", "rows"),
    [
        ({"rows": 7}, 7),
        ({"files": [["part-1.csv", 3], ["part-2.csv", 4]]}, 7),
        ({"files": [["upsert-0", "upsert", 5], ["delete-0", "delete", 2]]}, 7),
        ({"files": []}, 0),
        (["+I[1]", "+I[2]"], 2),
    ],
)
def test_rows_of_a_token(token: object, rows: int) -> None:
    assert rows_of(json.dumps(token)) == rows


def test_the_largest_key_of_what_came() -> None:
    """Exact, though keys share buckets: the low bits of 1 and of 1 + 2**16 are the same."""
    other = 1 + (1 << 16)
    tables = [
        pa.table({HASH_COLUMN: pa.array(hashes, pa.uint64())}) for hashes in ([1, 2, 2, other], [1, 1], [])
    ]
    assert Received(tables[:1], tables[1:]).largest_key == 3
    assert Received([pa.table({"n": [1, 1]})], []).largest_key == 0
