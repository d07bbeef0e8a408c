"""SHOW CREATE VIEW prints queries as Flink does, and what it prints makes the view again."""

from __future__ import annotations

import pytest

from tests.session.environments import ask, new_session
from tidemill.session.environment import TableEnvironment

PLACE = "`default_catalog`.`default_database`"
TABLES = (
    "CREATE TABLE t (id BIGINT, p STRING, n INT, ts TIMESTAMP(3), tags ARRAY<STRING>, "
    "r ROW<a INT, b ROW<c STRING>>, WATERMARK FOR ts AS ts) WITH ('connector'='datagen')",
    "CREATE TABLE u (p STRING, rate INT) WITH ('connector'='datagen')",
)
T, U = f"{PLACE}.`t`", f"{PLACE}.`u`"
CASES = {
    "SELECT p, n + 1 AS m, count(*) over () FROM t": (
        f"SELECT `t`.`p`, `t`.`n` + 1 AS `m`, COUNT(*) OVER ()\nFROM {T} AS `t`"
    ),
    "SELECT * FROM u x WHERE rate > 1 AND (p LIKE 'a%' OR p IS NULL)": (
        f"SELECT `x`.`p`, `x`.`rate`\nFROM {U} AS `x`\n"
        "WHERE `x`.`rate` > 1 AND (`x`.`p` LIKE 'a%' OR `x`.`p` IS NULL)"
    ),
    "SELECT t.p, o.p q FROM t LEFT JOIN u AS o ON t.p = o.p, (SELECT 1 AS k) s": (
        f"SELECT `t`.`p`, `o`.`p` AS `q`\nFROM {T} AS `t`\nLEFT JOIN {U} AS `o` ON `t`.`p` = `o`.`p`,\n"
        "(SELECT 1 AS `k`) AS `s`"
    ),
    "SELECT * FROM u a CROSS JOIN u b": (
        "SELECT `a`.`p`, `a`.`rate`, `b`.`p` AS `p0`, `b`.`rate` AS `rate0`\n"
        f"FROM {U} AS `a`\nCROSS JOIN {U} AS `b`"
    ),
    "SELECT p, sum(distinct n) s FROM t GROUP BY p HAVING count(*) > 1": (
        f"SELECT `t`.`p`, SUM(DISTINCT `t`.`n`) AS `s`\nFROM {T} AS `t`\nGROUP BY `t`.`p`\n"
        "HAVING COUNT(*) > 1"
    ),
    "WITH x AS (SELECT p q FROM u) SELECT * FROM x": (
        f"WITH `x` AS (SELECT `u`.`p` AS `q`\nFROM {U} AS `u`) SELECT `x`.`q`\nFROM `x` AS `x`"
    ),
    "SELECT p FROM t UNION ALL SELECT p FROM u": (
        f"SELECT `t`.`p`\nFROM {T} AS `t`\nUNION ALL\nSELECT `u`.`p`\nFROM {U} AS `u`"
    ),
    "SELECT p FROM t WHERE p NOT IN (SELECT p FROM u WHERE u.rate = t.n) AND NOT EXISTS (SELECT 1 FROM u)": (
        f"SELECT `t`.`p`\nFROM {T} AS `t`\nWHERE `t`.`p` NOT IN (SELECT `u`.`p`\nFROM {U} AS `u`\n"
        f"WHERE `u`.`rate` = `t`.`n`) AND NOT EXISTS (SELECT 1\nFROM {U} AS `u`)"
    ),
    "SELECT r.b.c, t.r.a FROM t": f"SELECT `t`.`r`.`b`.`c`, `t`.`r`.`a`\nFROM {T} AS `t`",
    "SELECT CASE WHEN n IN (1, 2) THEN 'x' END k, cast(n as int) i, n between 1 and 2 b, nullif(n, 1) z "
    "FROM t": (
        "SELECT CASE WHEN `t`.`n` IN (1, 2) THEN 'x' ELSE NULL END AS `k`, CAST(`t`.`n` AS INTEGER) AS `i`, "
        "`t`.`n` BETWEEN ASYMMETRIC 1 AND 2 AS `b`, CASE WHEN `t`.`n` = 1 THEN NULL ELSE `t`.`n` END AS `z`\n"
        f"FROM {T} AS `t`"
    ),
    "SELECT (n + 1) * 2 - (3 - 4), -(n + 1), 1 + (2 * 3) FROM t": (
        f"SELECT (`t`.`n` + 1) * 2 - (3 - 4), - (`t`.`n` + 1), 1 + 2 * 3\nFROM {T} AS `t`"
    ),
    "SELECT -1, 1e3, ceiling(1.5), year(ts), json_query(p, '$.a'), cast(tags AS array<varchar(3)>) FROM t": (
        "SELECT -1, 1E3, CEIL(1.5), EXTRACT(YEAR FROM `t`.`ts`), "
        "JSON_QUERY(`t`.`p`, '$.a' WITHOUT ARRAY WRAPPER NULL ON EMPTY NULL ON ERROR), "
        f"CAST(`t`.`tags` AS ARRAY< VARCHAR(3) >)\nFROM {T} AS `t`"
    ),
    "SELECT /*+ BROADCAST(u) */ t.p FROM t JOIN u ON t.p = u.p": (
        f"SELECT\n/*+ `BROADCAST`(`u`) */\n`t`.`p`\nFROM {T} AS `t`\n"
        f"INNER JOIN {U} AS `u` ON `t`.`p` = `u`.`p`"
    ),
    "SELECT trim(p), overlay(p placing 'x' from 1), position('a' in p), extract(year from ts) FROM t": (
        "SELECT TRIM(BOTH ' ' FROM `t`.`p`), OVERLAY(`t`.`p` PLACING 'x' FROM 1), POSITION('a' IN `t`.`p`), "
        f"EXTRACT(YEAR FROM `t`.`ts`)\nFROM {T} AS `t`"
    ),
    "SELECT * FROM (SELECT * FROM (SELECT 1 AS x)), (SELECT 2 AS x)": (
        "SELECT `EXPR$0`.`x`, `EXPR$2`.`x` AS `x0`\nFROM (SELECT `EXPR$1`.`x`\n"
        "FROM (SELECT 1 AS `x`) AS `EXPR$1`) AS `EXPR$0`,\n(SELECT 2 AS `x`) AS `EXPR$2`"
    ),
    "SELECT u.*, x.* FROM u JOIN u AS x USING (p)": (
        "SELECT `p`, `u`.`rate`, `x`.`p` AS `p0`, `x`.`rate` AS `rate0`\n"
        f"FROM {U} AS `u`\nINNER JOIN {U} AS `x` USING (`p`)"
    ),
    "SELECT * FROM u NATURAL LEFT JOIN (SELECT p FROM t)": (
        f"SELECT `p`, `u`.`rate`\nFROM {U} AS `u`\n"
        f"NATURAL LEFT JOIN (SELECT `t`.`p`\nFROM {T} AS `t`) AS `EXPR$0`"
    ),
    "SELECT * FROM u, UNNEST(ARRAY[1]) WITH ORDINALITY AS x (e, i), (SELECT * FROM u)": (
        "SELECT `u`.`p`, `u`.`rate`, `x`.`e`, `x`.`i`, `EXPR$0`.`p` AS `p0`, `EXPR$0`.`rate` AS `rate0`\n"
        f"FROM {U} AS `u`,\nUNNEST(ARRAY[1]) WITH ORDINALITY AS `x` (`e`, `i`),\n"
        f"(SELECT `u`.`p`, `u`.`rate`\nFROM {U} AS `u`) AS `EXPR$0`"
    ),
    "SELECT r.* FROM t": f"SELECT `t`.`r`.`a`, `t`.`r`.`b`\nFROM {T} AS `t`",
    "TABLE u": f"SELECT `u`.`p`, `u`.`rate`\nFROM {U} AS `u`",
    "SELECT * FROM (VALUES (1, 'a''b')) AS v(x, y)": (
        "SELECT `v`.`x`, `v`.`y`\nFROM (VALUES ROW(1, 'a''b')) AS `v` (`x`, `y`)"
    ),
    "VALUES (1), (2)": "VALUES ROW(1),\nROW(2)",
    "SELECT p, tag FROM t CROSS JOIN UNNEST(tags) AS x(tag)": (
        f"SELECT `t`.`p`, `x`.`tag`\nFROM {T} AS `t`\nCROSS JOIN UNNEST(`t`.`tags`) AS `x` (`tag`)"
    ),
    "SELECT window_end, count(*) c FROM TABLE(TUMBLE(TABLE u2, DESCRIPTOR(ts), INTERVAL '1' MINUTES)) "
    "GROUP BY window_end": (
        "SELECT `EXPR$0`.`window_end`, COUNT(*) AS `c`\nFROM TABLE(TUMBLE((SELECT `u2`.`ts`\n"
        f"FROM {PLACE}.`u2` AS `u2`), DESCRIPTOR(`ts`), INTERVAL '1' MINUTE)) AS `EXPR$0`\n"
        "GROUP BY `EXPR$0`.`window_end`"
    ),
    "SELECT p, n FROM t ORDER BY n DESC, p LIMIT 3": (
        f"SELECT `t`.`p`, `t`.`n`\nFROM {T} AS `t`\nORDER BY `n` DESC, `p`\nFETCH NEXT 3 ROWS ONLY"
    ),
    "SELECT p, row_number() OVER (PARTITION BY p ORDER BY n DESC NULLS LAST) rn FROM t": (
        "SELECT `t`.`p`, ROW_NUMBER() OVER (PARTITION BY `t`.`p` ORDER BY `t`.`n` DESC NULLS LAST) AS `rn`\n"
        f"FROM {T} AS `t`"
    ),
    "SELECT p, sum(n) s FROM t GROUP BY GROUPING SETS ((p, n), (p), ())": (
        f"SELECT `t`.`p`, SUM(`t`.`n`) AS `s`\nFROM {T} AS `t`\n"
        "GROUP BY GROUPING SETS((`t`.`p`, `t`.`n`), `t`.`p`, ())"
    ),
    "SELECT p FROM t /*+ OPTIONS('number-of-rows'='2') */": (
        f"SELECT `t`.`p`\nFROM {T}\n/*+ `OPTIONS`('number-of-rows' = '2') */"
    ),
}


@pytest.fixture(scope="module")
def session() -> TableEnvironment:
    made = new_session()
    ask(made, *TABLES, "CREATE VIEW u2 AS SELECT ts FROM t")
    return made


def printed(session: TableEnvironment, view: str) -> str:
    return str(ask(session, f"SHOW CREATE VIEW {view}")[0][0])


@pytest.mark.parametrize("query", CASES)
def test_names_in_full(session: TableEnvironment, query: str) -> None:
    ask(session, f"CREATE VIEW v AS {query}")
    text = printed(session, "v")
    ask(session, "DROP VIEW v")
    assert text.split("\nAS ", 1)[1] == CASES[query] + "\n"
    ask(session, text)
    again = printed(session, "v")
    ask(session, "DROP VIEW v")
    assert again == text


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (
            "SELECT *, u . * , rate + 1 AS more\n"
            " FROM u QUALIFY ROW_NUMBER() OVER (PARTITION BY p ORDER BY rate) = 1",
            "SELECT `u`.`p`, `u`.`rate`, `u`.`p` AS `p0`, `u`.`rate` AS `rate0` , rate + 1 AS more\n"
            " FROM u QUALIFY ROW_NUMBER() OVER (PARTITION BY p ORDER BY rate) = 1",
        ),
    ],
)
def test_what_has_no_such_form_is_shown_as_written_without_stars(
    session: TableEnvironment, query: str, kept: str
) -> None:
    ask(session, f"CREATE VIEW v AS {query}")
    text = printed(session, "v")
    ask(session, "DROP VIEW v")
    assert text.endswith(f"\nAS {kept}\n")


def test_a_view_is_read_from_where_it_was_made(session: TableEnvironment) -> None:
    ask(session, "CREATE DATABASE d", "USE d", "CREATE TABLE here (a INT) WITH ('connector'='datagen')")
    ask(session, "CREATE VIEW v AS SELECT a FROM here", "USE default_database")
    assert printed(session, "d.v").endswith(
        "AS SELECT `here`.`a`\nFROM `default_catalog`.`d`.`here` AS `here`\n"
    )
