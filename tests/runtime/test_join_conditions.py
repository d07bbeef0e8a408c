"""Conditions of streaming joins that kernels have no operation for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError

SIDES = """
  (VALUES (10, 1, 'a%'), (4, 2, 'b%'), (9, 1, 'z%'), (10, 1, 'a%')) AS a(n, k, p)
  JOIN (VALUES (2, 1, 'ab'), (3, 2, 'bb'), (20, 1, 'ac')) AS b(z, k, s)"""


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("a.k = b.k AND a.n / b.z > 1", [(9, 2), (10, 2), (10, 2)]),
        ("a.k = b.k AND b.s LIKE a.p AND a.n < b.z", [(10, 20), (10, 20)]),
        ("POWER(a.n - b.z, 2) < 2", [(4, 3)]),
        (
            "a.k = b.k AND (a.n > 9 OR MOD(a.n, b.z) = 1)",
            [(4, 3), (9, 2), (10, 2), (10, 2), (10, 20), (10, 20)],
        ),
    ],
)
def test_an_inner_join_has_any_condition(
    spark: SparkSession, condition: str, found: list[tuple[int, int]]
) -> None:
    session = new_session(tidemill__epoch__max_rows="1")
    query = f"SELECT a.n, b.z FROM {SIDES} ON {condition}"
    assert sorted(ask(session, query)) == found
    assert "runs=[Calc above it" in session.explain_sql(query)


def test_pairs_that_no_longer_pass_are_taken_back(spark: SparkSession) -> None:
    session = new_session(tidemill__epoch__max_rows="1")
    counted = "(SELECT k, COUNT(*) AS c FROM (VALUES 'x', 'y', 'x', 'x') AS t(k) GROUP BY k)"
    limits = "(VALUES ('x', 7), ('y', 7)) AS l(k, most)"
    query = f"SELECT t.k, c FROM {counted} AS t JOIN {limits} ON t.k = l.k AND most / c > 3"
    table = session.sql_query(query).to_pandas()
    assert sorted(zip(table["k"], table["c"], strict=True)) == [("y", 1)]


def test_another_join_cannot_draw_for_each_pair() -> None:
    """Its pairs are read several times."""
    condition = "a.k = b.k AND RAND_INTEGER(MOD(a.n, b.z)) = 0"
    query = f"SELECT a.n, b.z FROM {SIDES} ON {condition}".replace("JOIN", "LEFT JOIN")
    with pytest.raises(NotSupportedError, match=r"^RAND_INTEGER in a condition over both sides of an outer"):
        new_session().explain_sql(query)
