"""A view has the columns that were there when it was made, whatever becomes of its tables."""

from __future__ import annotations

import json

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session import snapshot
from tidemill.session.environment import TableEnvironment

TABLES = (
    "CREATE TABLE t (a INT, b STRING) WITH ('connector'='datagen')",
    "CREATE TABLE u (a INT, c STRING) WITH ('connector'='datagen')",
    "CREATE TABLE s (x INT, y STRING) WITH ('connector'='blackhole')",
)
VIEWS = {
    "SELECT * FROM t": ("a INT", "b STRING"),
    "SELECT x.* FROM t AS x": ("a INT", "b STRING"),
    "SELECT * FROM (SELECT * FROM t) WHERE a IN (SELECT a FROM u)": ("a INT", "b STRING"),
    "TABLE t": ("a INT", "b STRING"),
    "SELECT * FROM t UNION ALL SELECT * FROM u": ("a INT", "b STRING"),
    "SELECT * FROM t FULL JOIN u USING (a)": ("a INT", "b STRING", "c STRING"),
    "SELECT * FROM u NATURAL JOIN t": ("a INT", "c STRING", "b STRING"),
    "SELECT *, a + 1 AS z FROM t": ("a INT", "b STRING", "z INT"),
    "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1": ("a INT", "b STRING"),
}


@pytest.fixture
def session() -> TableEnvironment:
    made = new_session()
    ask(made, *TABLES)
    return made


def described(session: TableEnvironment, name: str) -> tuple[str, ...]:
    return tuple(f"{row[0]} {row[1]}" for row in ask(session, f"DESCRIBE {name}"))


def optimized(session: TableEnvironment, statement: str) -> str:
    return str(ask(session, f"EXPLAIN {statement}")[0][0]).partition("== Optimized Physical Plan ==")[2]


@pytest.mark.parametrize("query", VIEWS)
def test_a_new_column_of_a_table_is_no_column_of_the_view(session: TableEnvironment, query: str) -> None:
    ask(session, f"CREATE VIEW v AS {query}", f"CREATE TEMPORARY VIEW w AS {query}")
    ask(session, "CREATE VIEW above AS SELECT * FROM v")
    ask(session, "ALTER TABLE t ADD (d AS a * 10 FIRST)")
    assert {described(session, name) for name in ("v", "w", "above")} == {VIEWS[query]}


def test_declared_names_keep_their_columns(session: TableEnvironment) -> None:
    ask(session, "CREATE VIEW v (m, n) AS SELECT * FROM t")
    before = optimized(session, "INSERT INTO s SELECT * FROM v")
    ask(session, "ALTER TABLE t ADD (d AS 'new' FIRST)")
    assert described(session, "v") == ("m INT", "n STRING")
    assert optimized(session, "INSERT INTO s SELECT * FROM v") == before


def test_a_name_keeps_its_table_if_a_nearer_one_gets_such_a_column(session: TableEnvironment) -> None:
    """``b`` was the outer query's."""
    ask(session, "CREATE VIEW v AS SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c <> b)")
    before = optimized(session, "SELECT * FROM v")
    ask(session, "ALTER TABLE u ADD (b AS 'new')")
    assert optimized(session, "SELECT * FROM v") == before


def test_a_column_that_is_gone_fails_by_its_name(session: TableEnvironment) -> None:
    ask(session, "CREATE VIEW v (m, n) AS SELECT * FROM t", "ALTER TABLE t RENAME b TO other")
    with pytest.raises(ValidationError, match="Column 'b' not found in table 't'"):
        ask(session, "EXPLAIN SELECT * FROM v")


def test_types_stay_by_a_cast(session: TableEnvironment) -> None:
    ask(session, "CREATE VIEW v AS SELECT a, b FROM t", "ALTER TABLE t MODIFY a STRING")
    assert described(session, "v") == ("a INT", "b STRING")
    assert "CAST(a AS INTEGER) AS a" in ask(session, "EXPLAIN SELECT * FROM v")[0][0]
    ask(session, "ALTER TABLE t MODIFY a ARRAY<INT>")
    with pytest.raises(
        ValidationError, match="Column 'a' is ARRAY<INT>, but was INT when the view was created"
    ):
        ask(session, "EXPLAIN SELECT * FROM v")


def test_an_altered_view_has_the_columns_of_now(session: TableEnvironment) -> None:
    ask(session, "CREATE VIEW v (m, n) AS SELECT * FROM t", "ALTER TABLE t ADD d INT")
    ask(session, "ALTER VIEW v AS SELECT * FROM t", "ALTER TABLE t ADD e INT")
    assert described(session, "v") == ("a INT", "b STRING", "d INT")


def test_columns_that_no_name_tells_apart_are_refused(session: TableEnvironment) -> None:
    unnamed = "SELECT * FROM UNNEST(ARRAY[1]), UNNEST(ARRAY[2])"
    with pytest.raises(NotSupportedError, match="columns that no name tells apart"):
        ask(session, f"CREATE VIEW v AS {unnamed}")


def test_a_table_of_python_is_such_a_view(session: TableEnvironment) -> None:
    session.create_temporary_view("v", session.sql_query("SELECT * FROM t"))
    ask(session, "ALTER TABLE t ADD (d AS a * 10 FIRST)")
    assert described(session, "v") == ("a INT", "b STRING")


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE timed",
        "ALTER TABLE timed DROP a",
        "ALTER TABLE timed DROP WATERMARK",
        "ALTER TABLE timed MODIFY a BIGINT NOT NULL",
    ],
)
def test_a_view_is_described_as_it_was_made_whatever_becomes_of_its_table(
    session: TableEnvironment, change: str
) -> None:
    columns = "a INT, b STRING NOT NULL, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
    ask(session, f"CREATE TABLE timed ({columns}) WITH ('connector'='datagen')")
    ask(session, "CREATE VIEW v AS SELECT a, b, ts, PROCTIME() AS p FROM timed")
    ask(session, "CREATE TEMPORARY VIEW w AS SELECT * FROM v", change)
    for statement in ("DESCRIBE v", "DESCRIBE EXTENDED w", "SHOW COLUMNS IN v"):
        assert [row[:3] for row in ask(session, statement)] == [
            ("a", "INT", True),
            ("b", "STRING", False),
            ("ts", "TIMESTAMP(3) *ROWTIME*", True),
            ("p", "TIMESTAMP_LTZ(3) *PROCTIME*", False),
        ]
    assert "FROM `default_catalog`.`default_database`.`timed`" in ask(session, "SHOW CREATE VIEW v")[0][0]
    ask(session, "DROP VIEW v", "DROP TEMPORARY VIEW w")


def test_every_type_of_a_view_comes_back(session: TableEnvironment) -> None:
    values = "PROCTIME() AS p, ROW(1, CAST(NULL AS INT)) AS r, MAP[1, ARRAY['x']] AS m, INTERVAL '1' DAY AS i"
    ask(session, f"CREATE VIEW v AS SELECT {values}, x'00' AS b, 'x' AS c, 1.50 AS d, DATE '2020-01-01' AS e")
    again = TableEnvironment(snapshot.restored(json.loads(json.dumps(snapshot.taken(session.context)))))
    assert ask(again, "DESCRIBE v") == ask(session, "DESCRIBE v")
    assert ask(again, "SHOW CREATE VIEW v") == ask(session, "SHOW CREATE VIEW v")
