"""Generated nested subqueries: the plan as bound, the plan as optimised and SQLite give the same rows.

The optimised plan has them as a stream, too, where a global aggregate has no row over no rows: the plan must
not leave it to the aggregates of subqueries.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from random import Random

import pytest

from tests.plan.environment import FakeEnvironment
from tests.plan.interpreter import Interpreter, Row
from tests.plan.nested_queries import TABLES, Nested, random_query
from tidemill.errors import NotSupportedError, Position
from tidemill.plan.optimizer import optimize

PER_QUERY = 10
"""Generated queries for each of ``--queries``."""
BLOCK = 50
VALUES = (0, 1, 2, 3, None)

Data = dict[str, list[Row]]

DATA: Data = {
    "o": [(0, 1), (1, 2), (2, 0), (3, None), (None, 5)],
    "i": [(0, 2), (0, 3), (2, 7), (2, None), (None, 9)],
}
OF_O = "FROM i WHERE i.g = o.k"
NOTHING = "(SELECT COUNT(*) AS c FROM i WHERE w > 99)"
FORMS = {
    "NOT IN inside a subquery": (
        "SELECT k, (SELECT COUNT(*) FROM i WHERE i.w > o.v AND i.g NOT IN "
        "(SELECT j.g FROM i AS j WHERE j.w > 5)) FROM o"
    ),
    "three levels": (
        "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM i WHERE EXISTS (SELECT 1 FROM o AS p WHERE p.k = o.k "
        "AND 0 < (SELECT COUNT(*) FROM i AS j WHERE j.w > p.v)))"
    ),
    "a bound of the level above": (
        "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.g = o.k AND i.w > "
        "(SELECT MAX(p.v) FROM o AS p WHERE p.k <= i.g))"
    ),
    "EXISTS of a level further out": (
        "SELECT k, (SELECT MIN(n) FROM (SELECT COUNT(*) AS n FROM i WHERE i.g = o.k) AS x WHERE n > 5 OR "
        "EXISTS (SELECT 1 FROM i AS j WHERE j.w = o.v)) FROM o"
    ),
    "IN": f"SELECT k FROM o WHERE 0 IN (SELECT COUNT(*) {OF_O})",
    "NOT IN": f"SELECT k FROM o WHERE 0 NOT IN (SELECT COUNT(*) {OF_O})",
    "NOT IN of NULL": f"SELECT k FROM o WHERE k NOT IN (SELECT MAX(w) {OF_O})",
    "IN, uncorrelated": "SELECT k FROM o WHERE 0 IN (SELECT COUNT(*) FROM i WHERE w > 99)",
    "IN with HAVING": f"SELECT k, 0 IN (SELECT COUNT(*) {OF_O} HAVING COUNT(*) < o.v) FROM o",
    "ALL": f"SELECT k FROM o WHERE k >= ALL (SELECT COUNT(*) {OF_O})",
    "ANY": f"SELECT k, k < ANY (SELECT MAX(w) {OF_O}) FROM o",
    "DISTINCT": f"SELECT k, (SELECT DISTINCT COUNT(*) {OF_O}) FROM o",
    "HAVING": f"SELECT k, (SELECT COUNT(*) {OF_O} HAVING COUNT(*) < 2) FROM o",
    "LIMIT": f"SELECT k, (SELECT COUNT(*) {OF_O} LIMIT 1) FROM o",
    "SUM": f"SELECT k, (SELECT SUM(c) FROM (SELECT COUNT(*) AS c {OF_O}) AS x) FROM o",
    "COUNT": f"SELECT k, (SELECT COUNT(c) FROM (SELECT COUNT(*) AS c {OF_O}) AS x) FROM o",
    "CROSS JOIN": (
        f"SELECT k, (SELECT SUM(c + d) FROM (SELECT COUNT(*) AS c {OF_O}) AS x CROSS JOIN "
        "(SELECT COUNT(*) AS d FROM i WHERE i.w = o.v) AS y) FROM o"
    ),
    "UNION ALL": (
        f"SELECT k, (SELECT SUM(c) FROM (SELECT COUNT(*) AS c {OF_O} UNION ALL "
        "SELECT COUNT(*) FROM i WHERE i.w = o.v) AS x) FROM o"
    ),
    "SUM, uncorrelated": f"SELECT k, (SELECT SUM(c) FROM {NOTHING} AS x) FROM o",
    "CROSS JOIN, uncorrelated": f"SELECT k, (SELECT SUM(c) FROM {NOTHING} AS x CROSS JOIN i AS y) FROM o",
    "UNION ALL, uncorrelated": (
        "SELECT k FROM o WHERE k IN (SELECT COUNT(*) FROM i WHERE w > 99 UNION ALL SELECT w FROM i)"
    ),
    "HAVING, uncorrelated": (
        "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM (SELECT MAX(w) AS m FROM i WHERE w > 99) AS x, i "
        "WHERE m IS NULL)"
    ),
    "two levels, uncorrelated": (
        "SELECT k FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.g = o.k AND 0 IN "
        f"(SELECT SUM(c) FROM {NOTHING} AS x))"
    ),
    "with a condition of its own": (
        "SELECT k FROM o WHERE k NOT IN (SELECT m FROM (SELECT SUM(w) AS m FROM i WHERE w > 99) AS x WHERE "
        "EXISTS (SELECT 1 FROM o AS p WHERE p.k = o.k))"
    ),
    "LATERAL, uncorrelated": (
        f"SELECT k, c FROM o CROSS JOIN LATERAL (SELECT c FROM {NOTHING} AS x, i WHERE i.g = o.k) AS y"
    ),
    "LATERAL": (
        f"SELECT k, c FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS c {OF_O} HAVING COUNT(*) < 2) AS x ON TRUE"
    ),
    "LATERAL ON": (f"SELECT k, c FROM o LEFT JOIN LATERAL (SELECT COUNT(*) AS c {OF_O}) AS x ON x.c <= o.k"),
}
"""Each was wrong once: rows that are not there, what NULL says, whose column is read."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "block" in metafunc.fixturenames:
        count = metafunc.config.getoption("--queries") * PER_QUERY
        first = metafunc.config.getoption("--seed") * 1_000_000
        metafunc.parametrize("block", range(first, first + count, BLOCK))


def environment() -> FakeEnvironment:
    made = FakeEnvironment()
    for table, columns in TABLES.items():
        made.add_table(table, **dict.fromkeys(columns, "INT"))
    return made


def random_data(chance: Random) -> Data:
    return {
        table: [tuple(chance.choice(VALUES) for _ in columns) for _ in range(chance.randint(0, 5))]
        for table, columns in TABLES.items()
    }


def of_sqlite(text: str, data: Data) -> Counter[Row]:
    with closing(sqlite3.connect(":memory:")) as database:
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", data[table])
        return Counter(database.execute(text).fetchall())


def difference(query: Nested, data: Data) -> str:
    """What is wrong; '' if nothing."""
    bound = environment().bind(query.text)
    run = Interpreter(data)
    wanted = Counter(run.rows(bound))
    if query.shared and of_sqlite(query.text, data) != wanted:
        return f"as bound {dict(wanted)}, SQLite {dict(of_sqlite(query.text, data))}"
    optimized = optimize(bound)
    for streaming in (False, True):
        run = Interpreter(data, streaming=streaming)
        found, wanted = (Counter(run.rows(plan)) for plan in (optimized, bound))
        if found != wanted:
            return f"optimised {dict(found)}, as bound {dict(wanted)}, {streaming=}"
    return ""


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_were_wrong(form: str) -> None:
    text = FORMS[form]
    shared = not any(word in text for word in ("LATERAL", "ALL (", "ANY ("))
    assert not difference(Nested(text=text, shared=shared), DATA)


def test_generated_nested_subqueries(block: int) -> None:
    for seed in range(block, block + BLOCK):
        query, data = random_query(seed), random_data(Random(seed))
        wrong = difference(query, data)
        assert not wrong, f"seed {seed}: {wrong}\n{query.text}\n{data}"


def test_rows_that_would_be_drawn_twice_are_refused_by_name() -> None:
    drawn = "(SELECT k, CAST(RAND() * 3 AS INT) AS r FROM o) AS x"
    for column, operator in (("r", "="), ("k", ">")):
        text = f"SELECT (SELECT COUNT(*) FROM i WHERE i.g {operator} x.{column}) FROM {drawn}"
        optimize(environment().bind(text))
    with pytest.raises(NotSupportedError, match="rows that contain a value of RAND") as refused:
        optimize(environment().bind(f"SELECT k, (SELECT COUNT(*) FROM i WHERE i.g > x.r) FROM {drawn}"))
    assert refused.value.position == Position(line=1, column=11)
