"""DELETE and UPDATE of tables without a primary key: the database judges the rows, if it does so as we do."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.postgres import Server
from tests.session.environments import ask, new_session
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.session.environment import TableEnvironment

ROWS = [(n % 5 or None, name) for n in range(20) for name in ("a", "A", "it's", ":v0", "", None)]
Judge = Callable[[tuple[Any, ...]], bool | None]


def session(url: str, columns: str = "id BIGINT, name STRING", **options: str) -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch")
    given = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    with_url = f"'connector'='jdbc', 'url'='{url}', 'table-name'='t'{given}"
    ask(made, f"CREATE TABLE t ({columns}) WITH ({with_url})")
    return made


def lite(tmp_path: Path, types: str = "id INTEGER, name TEXT") -> sqlite3.Connection:
    made = sqlite3.connect(tmp_path / "x.db")
    with made:
        made.execute(f"CREATE TABLE t ({types})")
    return made


def fill(made: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    with made:
        made.execute("DELETE FROM t")
        made.executemany("INSERT INTO t VALUES (?, ?)", rows)


def quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def condition(chance: random.Random, depth: int = 2) -> tuple[str, Judge]:
    """A condition as SQL, and what it says of a row: None where it is unknown."""
    if depth and chance.random() < 0.6:
        (a, judges_a), (b, judges_b) = condition(chance, depth - 1), condition(chance, depth - 1)
        joined = chance.choice(("AND", "OR"))
        decides = joined == "OR"

        def both(row: tuple[Any, ...]) -> bool | None:
            said = (judges_a(row), judges_b(row))
            return decides if decides in said else None if None in said else not decides

        return f"({a} {joined} {b})", both
    column = chance.randrange(2)
    name = ("id", "name")[column]
    is_null = chance.random() < 0.5
    if chance.random() < 0.3:
        return f"{name} IS {'' if is_null else 'NOT '}NULL", lambda row: (row[column] is None) == is_null
    value = chance.randrange(6) if name == "id" else chance.choice(("a", "A", "it's", ":v0", ""))
    shown = str(value) if name == "id" else quoted(str(value))
    return f"{name} = {shown}", lambda row: None if row[column] is None else row[column] == value


def check_random_conditions(
    made: TableEnvironment, refill: Callable[[], None], seen: Callable[[], Any]
) -> None:
    chance = random.Random(7)
    for _ in range(25):
        text, judges = condition(chance)
        refill()
        made.execute_sql(f"DELETE FROM t WHERE {text}").wait()
        expected = sorted((row for row in ROWS if judges(row) is not True), key=repr)
        assert sorted(seen(), key=repr) == expected, text
        refill()
        number, name = chance.choice((7, None, -(2**31))), chance.choice(("it's :n0", "", None))
        sets = {"id": number, "name": name}
        for column in chance.sample(sorted(sets), chance.randrange(2)):
            del sets[column]
        shown = {number: str(number), name: quoted(str(name)), None: "NULL"}
        listed = ", ".join(f"{column} = {shown[value]}" for column, value in sets.items())
        made.execute_sql(f"UPDATE t SET {listed} WHERE {text}").wait()
        changed = [
            (sets.get("id", row[0]), sets.get("name", row[1])) if judges(row) is True else row for row in ROWS
        ]
        assert sorted(seen(), key=repr) == sorted(changed, key=repr), (listed, text)


def test_rows_go_for_which_the_condition_is_true(tmp_path: Path) -> None:
    with lite(tmp_path) as open:
        check_random_conditions(
            session(f"jdbc:sqlite:{tmp_path}/x.db"),
            lambda: fill(open, ROWS),
            lambda: open.execute("SELECT * FROM t").fetchall(),
        )


def test_of_postgres_as_well(postgres: Server) -> None:
    def query(text: str, rows: list[tuple[Any, ...]] | None = None) -> list[Any]:
        with postgres.connect() as open:
            if rows is not None:
                open.cursor().executemany(text, rows)
                return []
            found = open.execute(text)
            return found.fetchall() if found.description else []

    postgres.clear()
    query("CREATE TABLE t (id BIGINT, name TEXT)")

    def refill() -> None:
        query("DELETE FROM t")
        query("INSERT INTO t VALUES (%s, %s)", ROWS)

    check_random_conditions(session(postgres.url), refill, lambda: query("SELECT id, name FROM t"))


def test_all_rows_or_none(tmp_path: Path) -> None:
    made = session(f"jdbc:sqlite:{tmp_path}/x.db")
    with lite(tmp_path) as open:
        fill(open, ROWS)
        made.execute_sql("UPDATE t SET id = id, name = name").wait()
        for text in ("id IN (1, 2) AND id BETWEEN 3 AND 9", "id > 100", "name = '' AND id < 0"):
            made.execute_sql(f"DELETE FROM t WHERE {text}").wait()
            assert open.execute("SELECT COUNT(*) FROM t").fetchone() == (len(ROWS),), text
        made.execute_sql("DELETE FROM t WHERE id IN (1, 2) OR id BETWEEN 4 AND 9").wait()
        assert {row[0] for row in open.execute("SELECT id FROM t")} == {3, None}
        made.execute_sql("DELETE FROM t").wait()
        assert open.execute("SELECT COUNT(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize(
    "text",
    [
        "UPPER(name) = 'A'",
        "name LIKE 'a%'",
        "name > 'a'",
        "id + 1 = 2",
        "id = 1 OR UPPER(name) = 'A'",
        "id = 1 AND name > 'a'",
        "id IN (SELECT id FROM t)",
        "other = 1",
        "d = 1.5",
    ],
)
def test_what_the_database_may_judge_in_another_way_is_refused(tmp_path: Path, text: str) -> None:
    made = session(f"jdbc:sqlite:{tmp_path}/x.db", "id BIGINT, name STRING, other BIGINT, d DOUBLE")
    with lite(tmp_path, "id INTEGER, name TEXT, other TEXT, d REAL") as open:
        open.execute("INSERT INTO t VALUES (1, 'A', '1', 1.5)")
        open.commit()
        with pytest.raises(NotSupportedError, match="DELETE of a table without a primary key") as found:
            made.execute_sql(f"DELETE FROM t WHERE {text}")
        assert found.value.position is not None
        assert open.execute("SELECT COUNT(*) FROM t").fetchone() == (1,)
        with pytest.raises(NotSupportedError, match="UPDATE of a table without a primary key"):
            made.execute_sql(f"UPDATE t SET id = 1 WHERE {text}")


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ("id = id + 1", "to values that are not constants"),
        ("v = 'abc'", "to values that are not constants"),
        ("d = 1.5", "to values that are not constants"),
        ("name = UPPER(name)", "to values that are not constants"),
        ("id = (SELECT MAX(id) FROM t)", "by this condition"),
        ("other = 1", "on column 'other', which may have other values"),
        ("d = NULL", "on column 'd', which may have other values"),
    ],
)
def test_what_the_database_may_compute_in_another_way_is_refused(
    tmp_path: Path, sets: str, said: str
) -> None:
    columns = "id BIGINT, name STRING, other BIGINT, d DOUBLE, v VARCHAR(2)"
    made = session(f"jdbc:sqlite:{tmp_path}/x.db", columns)
    with lite(tmp_path, "id INTEGER, name TEXT, other TEXT, d REAL, v TEXT") as open:
        open.execute("INSERT INTO t VALUES (1, 'A', '1', 1.5, 'x')")
        open.commit()
        with pytest.raises(NotSupportedError, match=f"a table without a primary key {said}") as found:
            made.execute_sql(f"UPDATE t SET {sets} WHERE id = 1")
        assert found.value.position is not None
        assert open.execute("SELECT * FROM t").fetchall() == [(1, "A", "1", 1.5, "x")]


def test_values_of_other_types_keep_sqlite_from_deleting(tmp_path: Path) -> None:
    made = session(f"jdbc:sqlite:{tmp_path}/x.db")
    with lite(tmp_path) as open:
        fill(open, [(1, "a"), (2, b"a"), ("x", "b")])
        for text in ("id = 1", "name = 'a'"):
            with pytest.raises(ConnectorError, match="Table 't' has values of other types"):
                made.execute_sql(f"DELETE FROM t WHERE {text}")
        assert open.execute("SELECT COUNT(*) FROM t").fetchone() == (3,)


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="no such table: t"):
        session(f"jdbc:sqlite:{tmp_path}/x.db").execute_sql("DELETE FROM t")
