"""ROW values are equal where all their fields are, a NULL with a NULL; lists of values go one by one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tests.tiers import sampled

NOTHING = "CAST(NULL AS INT)"
VALUES = f"(VALUES (1, 1, 'x'), (2, {NOTHING}, 'x'), (3, {NOTHING}, CAST(NULL AS STRING)), (4, 1, 'y'))"
SIDES: dict[str, str] = {
    side: f"(SELECT id, a, b, ROW(a, b) AS c, ROW(id * 0, ROW(a, b)) AS n, ROW(CAST(a AS DOUBLE), b) AS d "
    f"FROM {VALUES} AS t (id, a, b)) AS {side}"
    for side in ("l", "r")
}
NUMBERS: list[tuple[object, ...]] = [(1, 1), (2, 2), (3, 3), (4, 4)]
CASES: dict[str, list[tuple[object, ...]]] = {
    **{
        f"SELECT l.id, r.id FROM {SIDES['l']} JOIN {SIDES['r']} ON l.{column} {operator} r.{column}": NUMBERS
        for column in ("c", "n", "d")
        for operator in ("=", "IS NOT DISTINCT FROM")
    },
    f"SELECT l.id, r.id FROM {SIDES['l']} JOIN {SIDES['r']} ON (l.a, l.b) = (r.a, r.b)": [(1, 1), (4, 4)],
    f"SELECT r.id FROM {SIDES['l']} LEFT JOIN {SIDES['r']} ON l.c = r.c AND l.id < r.id": [(None,)] * 4,
    f"SELECT id FROM {SIDES['l']} WHERE c IN (SELECT c FROM {SIDES['r']} WHERE id < 3)": [(1,), (2,)],
    f"SELECT id FROM {SIDES['l']} WHERE c NOT IN (SELECT c FROM {SIDES['r']} WHERE id < 3)": [(3,), (4,)],
    f"SELECT id FROM {SIDES['l']} WHERE (a, b) NOT IN (SELECT a, b FROM {SIDES['r']} WHERE id < 2)": [(4,)],
    "SELECT l.id, l.c = r.c, l.c <> r.c, l.c IS DISTINCT FROM r.c, (l.a, l.b) = (r.a, r.b), "
    "(l.a, l.b) <> (r.a, r.b), CASE l.c WHEN r.c THEN 1 END, NULLIF(l.c, r.c) IS NULL "
    f"FROM {SIDES['l']} CROSS JOIN {SIDES['r']} WHERE r.id = 2": [
        (1, False, True, True, None, None, None, False),
        (2, True, False, False, None, None, 1, True),
        (3, False, True, True, None, None, None, False),
        (4, False, True, True, False, True, None, False),
    ],
}


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_are_compared_as_values(spark: SparkSession, mode: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    for query, expected in sampled(CASES.items()):
        assert sorted(ask(session, query), key=repr) == sorted(expected, key=repr), query
