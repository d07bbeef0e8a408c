"""LEFT JOIN UNNEST with a condition: of elements that it does not want there are none."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session

ROWS = (
    "(VALUES (1, ARRAY[1, 2, 3]), (2, ARRAY[5]), (3, ARRAY[0]), (9, ARRAY[9, CAST(NULL AS INT)]))"
    " AS t (k, xs)"
)
NESTED = "(VALUES (1, ARRAY[ROW(1, 'a'), ROW(2, 'b')]), (2, ARRAY[ROW(3, 'a')])) AS t (k, rs)"
WITH_NULL = (
    "(VALUES (1, ARRAY[ROW(1, 'a'), CAST(NULL AS ROW<p INT, q STRING>), ROW(3, 'c')]), "
    "(2, ARRAY[CAST(NULL AS ROW<p INT, q STRING>)])) AS t (k, rs)"
)
CASES: dict[str, list[tuple[object, ...]]] = {
    f"SELECT k, x FROM {ROWS} LEFT JOIN UNNEST(xs) AS u (x) ON x > k": [
        (1, 2),
        (1, 3),
        (2, 5),
        (3, None),
        (9, None),
    ],
    f"SELECT k, x, n FROM {ROWS} LEFT JOIN UNNEST(xs) WITH ORDINALITY AS u (x, n) ON n > 1 AND k < 9": [
        (1, 2, 2),
        (1, 3, 3),
        (2, None, None),
        (3, None, None),
        (9, None, None),
    ],
    f"SELECT k, q FROM {NESTED} LEFT JOIN UNNEST(rs) AS u (p, q) ON q = 'b' OR p = 7": [(1, "b"), (2, None)],
    f"SELECT q FROM {NESTED} LEFT JOIN UNNEST(rs) AS u (p, q) ON CAST(p AS STRING) = '3'": [("a",), (None,)],
    "SELECT k, v FROM (VALUES (1, MAP['a', 1, 'b', 2]), (2, MAP['c', 3])) AS t (k, m) "
    "LEFT JOIN UNNEST(m) AS u (key1, v) ON key1 = 'b'": [(1, 2), (2, None)],
    f"SELECT k, n, p FROM {WITH_NULL} CROSS JOIN UNNEST(rs) WITH ORDINALITY AS u (p, q, n)": [
        (1, 1, 1),
        (1, 3, 3),
    ],
    f"SELECT k, n, p FROM {WITH_NULL} LEFT JOIN UNNEST(rs) WITH ORDINALITY AS u (p, q, n) ON TRUE": [
        (1, 1, 1),
        (1, 3, 3),
        (2, None, None),
    ],
    f"SELECT k, x FROM {ROWS} LEFT JOIN UNNEST(xs) AS u (x) ON FALSE WHERE k > 2": [(3, None), (9, None)],
}


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_elements_are_chosen_before_there_are_none(spark: SparkSession, mode: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    for query, expected in CASES.items():
        assert sorted(ask(session, query), key=repr) == sorted(expected, key=repr), query
