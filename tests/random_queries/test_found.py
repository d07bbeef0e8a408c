"""What random queries found once; each on so little data that its answer can be seen."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Row, Session, folded

FOUND: dict[str, tuple[str, list[Row]]] = {
    "a column that equals two of the other side": (
        "SELECT a.x, b.y FROM (VALUES (1), (2)) AS a (x) "
        "LEFT JOIN (VALUES (1, 1, 7), (2, 3, 8)) AS b (u, v, y) "
        "ON a.x = b.u AND a.x = b.v",
        [(1, 7), (2, None)],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_stream_folds_to(spark: SparkSession, name: str) -> None:
    query, expected = FOUND[name]
    assert folded(Session({"parallelism.default": "1"}).changes(query)) == Counter(expected)
