"""The plan as bound and the plan as optimised give the same rows on random small tables."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.environment import FakeEnvironment
from tests.plan.interpreter import Interpreter, Row
from tests.tiers import examples
from tidemill.plan import nodes as n
from tidemill.plan.optimizer import optimize

MANY = " UNION ALL ".join(
    {
        0: f"SELECT a, b + {i} AS b FROM t",
        1: f"SELECT {i}, NULLIF(1, 1)",
        2: f"VALUES ({i}, {i}), ({i}, 7)",
        3: f"SELECT b, a FROM u WHERE c = {i % 4}",
        4: "SELECT * FROM (SELECT a, c FROM u) AS x",
    }[i % 5]
    for i in range(40)
)
QUERIES = (
    MANY,
    f"SELECT a FROM ({MANY}) WHERE b > 2",
    "SELECT a + 1 AS x, b FROM (SELECT a, b, c FROM t WHERE c > 1) WHERE a < 3",
    "SELECT x FROM (SELECT a + b AS x FROM t) WHERE x > 2 AND x = x",
    "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a WHERE t.c > 1 AND u.b < 3",
    "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a AND t.b > 1 AND u.b > 0 WHERE t.c = 1",
    "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b > 1",
    "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a WHERE u.b IS NULL",
    "SELECT t.a, u.b FROM t RIGHT JOIN u ON t.a = u.a AND t.b = 1 WHERE u.b < 3",
    "SELECT t.a, u.b FROM t FULL JOIN u ON t.a = u.a WHERE t.b > 0",
    "SELECT t.a, u.b FROM t FULL JOIN u ON t.a = u.a WHERE t.b > 0 OR u.b > 0",
    "SELECT a, b FROM t FULL JOIN (SELECT a, c AS d FROM u) AS v USING (a)",
    "SELECT a, c FROM t NATURAL JOIN u",
    "SELECT t.a, u.b, w.c FROM t, u, t AS w WHERE t.a = u.a AND u.b = w.b AND w.c > 0",
    "SELECT t.a, u.b, w.c, w.a FROM t, u, t AS w WHERE t.a = w.b AND u.b = w.c AND t.b < u.a",
    "SELECT * FROM t, u, (SELECT c AS x, b AS y FROM t WHERE a > 1) AS w WHERE u.c = y AND x = t.a",
    "SELECT t.a, u.b, w.c FROM u, t, t AS w, u AS z WHERE t.a = w.b AND z.b = u.b AND t.c + z.a = 3",
    "SELECT t.a, u.b FROM t, u WHERE (t.a = u.a AND t.b = 1) OR (t.c > 1 AND t.a = u.a AND u.b = 2)",
    "SELECT a, (b = 1 AND c = 1) OR (c = 1 AND a = 2) AS x, (b = 1) OR (b = 1 AND c = 1) AS y FROM t",
    "SELECT a, n FROM (SELECT a, COUNT(*) AS n, SUM(b) AS s FROM t GROUP BY a) WHERE a > 1 AND n > 1",
    "SELECT n FROM (SELECT COUNT(b) AS n FROM t) WHERE 1 = 2",
    "SELECT a, SUM(b) FILTER (WHERE c > 1) AS s, COUNT(DISTINCT c) AS d FROM t GROUP BY a",
    "SELECT a, b, COUNT(*) AS n, GROUPING(a) AS g FROM t GROUP BY ROLLUP (a, b)",
    "SELECT a, MAX(a) AS m FROM t GROUP BY CUBE (a, b)",
    "SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (a), ())",
    "SELECT x FROM (SELECT a AS x FROM t UNION ALL SELECT b FROM u) WHERE x > 1",
    "SELECT x FROM (SELECT a AS x, b FROM t UNION SELECT a, b FROM u) WHERE x > 1",
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a, b FROM t EXCEPT SELECT a, b FROM u",
    "SELECT a FROM (SELECT DISTINCT a, b FROM t) WHERE b > 1",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b > t.b)",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE b > 2) AND c > 0",
    "SELECT a FROM t WHERE b IN (SELECT b FROM u)",
    "SELECT a FROM t WHERE b NOT IN (SELECT b FROM u)",
    "SELECT a FROM t WHERE b NOT IN (SELECT b FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE (a, b) NOT IN (SELECT a, b FROM u)",
    "SELECT a FROM t WHERE 1 NOT IN (SELECT b FROM u)",
    "SELECT a FROM t WHERE (a, 1) NOT IN (SELECT a, b FROM u)",
    "SELECT a FROM t WHERE b IN (SELECT b FROM u) OR c = 1",
    "SELECT a FROM t WHERE b IN (SELECT b FROM u) OR NOT (c IN (SELECT c FROM u) OR a > 1)",
    "SELECT a FROM t WHERE c < 2 OR (a, b) IN (SELECT a, b FROM u) AND NOT (b IN (SELECT a FROM u) AND c=1)",
    "SELECT a, b IN (SELECT b FROM u) AS x FROM t",
    "SELECT a, b > ANY (SELECT b FROM u WHERE u.a = t.a) AS x, b <> ANY (SELECT b FROM u) AS y FROM t",
    "SELECT a, b <= ALL (SELECT b FROM u) AS x, b = ALL (SELECT b FROM u WHERE u.c < t.c) AS y FROM t",
    "SELECT a, b NOT IN (SELECT b FROM u WHERE u.c = t.c) AS x FROM t",
    "SELECT a, (a, b) IN (SELECT a, b FROM u) AS x FROM t",
    "SELECT a, (a, b) NOT IN (SELECT a, b FROM u WHERE u.c = t.c) AS x FROM t",
    "SELECT a FROM t WHERE (a, b) IN (SELECT c, a FROM u) OR c = 1",
    "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS x FROM t",
    "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a < t.b) AS x FROM t",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.b > t.b) AS n FROM t",
    "SELECT a, (SELECT MAX(b) + t.c FROM u WHERE u.a = t.a) AS n FROM t",
    "SELECT a FROM t WHERE b > (SELECT MIN(b) FROM u WHERE u.a = t.a)",
    "SELECT a FROM t WHERE b + 1 > (SELECT MIN(b) FROM u)",
    "SELECT a, (SELECT SUM(n) FROM (SELECT a, COUNT(*) AS n FROM u WHERE u.b = t.b GROUP BY a)) AS s FROM t",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND EXISTS"
    " (SELECT 1 FROM t AS v WHERE v.b = u.b AND v.c = t.c))",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u JOIN t AS v ON u.b = v.b WHERE u.a = t.a AND v.c = t.c)",
    "SELECT a FROM t WHERE EXISTS"
    " (SELECT a FROM u WHERE u.a = t.a UNION ALL SELECT b FROM u WHERE u.b = t.b)",
    "SELECT a, (SELECT COUNT(*) FROM u WHERE u.a = v.a) AS n FROM (SELECT a FROM t GROUP BY a) AS v",
    "SELECT t.a, v.m FROM t, LATERAL (SELECT MAX(b) AS m FROM u WHERE u.a = t.a) AS v",
    "SELECT t.a, v.n FROM t LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.b < t.b) AS v ON TRUE",
    "SELECT t.a, v.b FROM t CROSS JOIN LATERAL (SELECT b FROM u WHERE u.a = t.a AND u.b > t.b) AS v",
    "SELECT t.a, v.b FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.a = t.a) AS v ON v.b > 1",
    "SELECT t.a, v.b FROM t, LATERAL (SELECT b FROM u WHERE u.a = t.a ORDER BY b DESC LIMIT 1) AS v",
    "SELECT t.a, v.b FROM t, LATERAL (SELECT b FROM u WHERE u.a < t.a ORDER BY b LIMIT 1) AS v",
    "SELECT a, b FROM (SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b, c) AS r FROM t)"
    " WHERE r <= 2 AND a > 0",
    "SELECT a FROM t WHERE c > 1 OR TRUE",
    "SELECT a FROM t WHERE NOT NOT (c > 1) AND TRUE",
    "SELECT a FROM t LIMIT 0",
    "SELECT a FROM t WHERE a IN (1, 2, NULL)",
    "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.b IN (SELECT b FROM u WHERE c = 1)",
    "WITH x AS (SELECT a, SUM(b) AS s FROM t GROUP BY a) SELECT p.a FROM x AS p JOIN x AS q ON p.s = q.s",
)

SAME = (
    (
        "SELECT t.a, v.m FROM t, LATERAL (SELECT MAX(b) AS m FROM u WHERE u.a = t.a) AS v",
        "SELECT a, (SELECT MAX(b) FROM u WHERE u.a = t.a) AS m FROM t",
    ),
    (
        "SELECT t.a, v.n FROM t"
        " LEFT JOIN LATERAL (SELECT COUNT(*) + 1 AS n FROM u WHERE u.b < t.b) AS v ON TRUE",
        "SELECT a, (SELECT COUNT(*) + 1 FROM u WHERE u.b < t.b) AS n FROM t",
    ),
    (
        "SELECT t.a, v.b FROM t CROSS JOIN LATERAL (SELECT b FROM u WHERE u.a = t.a AND u.b > t.b) AS v",
        "SELECT t.a, u.b FROM t JOIN u ON u.a = t.a AND u.b > t.b",
    ),
    (
        "SELECT t.a, v.b FROM t LEFT JOIN LATERAL (SELECT b FROM u WHERE u.a = t.a) AS v ON v.b > 1",
        "SELECT t.a, u.b FROM t LEFT JOIN u ON u.a = t.a AND u.b > 1",
    ),
    (
        "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b"
        " UNION ALL SELECT a, NULLIF(1, 1), COUNT(*) FROM t GROUP BY a"
        " UNION ALL SELECT NULLIF(1, 1), NULLIF(1, 1), COUNT(*) FROM t HAVING COUNT(*) > 0",
    ),
    (
        "SELECT c, MAX(c) AS m, GROUPING_ID(a, c) AS g FROM t GROUP BY GROUPING SETS ((c), (c), (a))",
        "SELECT c, MAX(c) AS m, CAST(2 AS BIGINT) AS g FROM t GROUP BY c"
        " UNION ALL SELECT c, MAX(c), CAST(2 AS BIGINT) FROM t GROUP BY c"
        " UNION ALL SELECT NULLIF(1, 1), MAX(c), CAST(1 AS BIGINT) FROM t GROUP BY a",
    ),
    (
        "SELECT a FROM t WHERE b BETWEEN SYMMETRIC c AND a",
        "SELECT a FROM t WHERE (b >= c AND b <= a) OR (b >= a AND b <= c)",
    ),
    (
        "SELECT a FROM t WHERE (a, b) IN ((1, 2), (2, 1))",
        "SELECT a FROM t WHERE (a = 1 AND b = 2) OR (a = 2 AND b = 1)",
    ),
    (
        "SELECT a FROM t WHERE b > ALL (SELECT c FROM u)",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE (t.b <= u.c) IS NOT FALSE)",
    ),
    (
        "SELECT a FROM t WHERE b >= ANY (SELECT b FROM u)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.b >= u.b)",
    ),
    (
        "SELECT a FROM t WHERE NOT (c = ALL (SELECT b FROM u))",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.c <> u.b)",
    ),
    (
        "SELECT CASE a WHEN 1 THEN b ELSE c END AS x FROM t",
        "SELECT CASE WHEN a = 1 THEN b ELSE c END AS x FROM t",
    ),
)
"""Queries beside a longer way of saying the same."""

VALUE = st.one_of(st.none(), st.integers(0, 3))
TABLE = st.lists(st.tuples(VALUE, VALUE, st.integers(0, 3)), max_size=5)


def environment() -> FakeEnvironment:
    made = FakeEnvironment()
    made.add_table("t", a="INT", b="INT", c="INT NOT NULL")
    made.add_table("u", a="INT", b="INT", c="INT NOT NULL")
    return made


@pytest.mark.parametrize("sql", QUERIES)
def test_optimised_plan_gives_the_same_rows(sql: str) -> None:
    bound = environment().bind(sql)
    optimised = optimize(bound)
    assert optimised.fields == bound.fields

    @settings(max_examples=examples(30), deadline=None, database=None, derandomize=True)
    @given(t=TABLE, u=TABLE)
    def same(t: list[Row], u: list[Row]) -> None:
        run = Interpreter({"t": t, "u": u})
        assert Counter(run.rows(optimised)) == Counter(run.rows(bound))

    same()


@pytest.mark.parametrize(("sql", "longer"), SAME)
def test_short_and_long_form_give_the_same_rows(sql: str, longer: str) -> None:
    short, long = optimize(environment().bind(sql)), environment().bind(longer)

    @settings(max_examples=examples(30), deadline=None, database=None, derandomize=True)
    @given(t=TABLE, u=TABLE)
    def same(t: list[Row], u: list[Row]) -> None:
        run = Interpreter({"t": t, "u": u})
        assert Counter(run.rows(short)) == Counter(run.rows(long))

    same()


def test_no_subquery_is_left() -> None:
    def nodes(plan: n.LogicalNode) -> list[n.LogicalNode]:
        return [plan, *(x for child in plan.inputs for x in nodes(child))]

    plan = optimize(environment().bind("SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE u.a = t.a)"))
    joins = [x.kind for x in nodes(plan) if isinstance(x, n.Join)]
    assert joins == [n.JoinKind.SEMI]
