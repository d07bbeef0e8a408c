"""CREATE SAVEPOINT ... WITH STATE of operators that keep rows of their inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

ORDERS = "".join(f"c{i % 3},{i % 5}\n" for i in range(12)) + ",7\n,7\nc0,0\n"
CITIES = "c0,L0,0\nc0,L0,0\nc1,L1,1\n,L9,9\nc9,L9,9\n"
LATER = {"o": "c0,4\nc9,4\n,1\nc1,9\n", "c": "c2,L2,2\nc1,L7,1\n"}
JOB = """STATEMENT SET BEGIN
INSERT INTO lands SELECT land, COUNT(*), COUNT(price)
  FROM o FULL JOIN c ON o.city = c.city AND price + 1 > size GROUP BY land;
INSERT INTO tops SELECT city, price FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY price DESC) AS n FROM o) WHERE n <= 2;
INSERT INTO tops SELECT city, price FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY p DESC) AS n FROM o) WHERE n = 1;
INSERT INTO lands SELECT land, COUNT(*), SUM(size) FROM c WHERE size IN (SELECT price FROM o) GROUP BY land;
END"""
STATE = """group_aggregate_1 (land, `COUNT(*)`, `COUNT(price)`) AS
  (SELECT land, COUNT(*), COUNT(price)
   FROM o FULL JOIN c ON o.city = c.city AND price + 1 > size GROUP BY land),
join_1 (`left city`, `left price`) AS (SELECT city, price FROM o),
join_1_right (`right city`, `right land`, `right size`) AS (SELECT city, land, size FROM c),
rank_1 AS (SELECT city, price FROM o),
rank_2 AS (SELECT city, LAST_VALUE(price) AS price FROM o GROUP BY city),
join_2 (`left land`, `left size`, weight) AS (SELECT land, size, COUNT(*) FROM c GROUP BY land, size),
join_2_right (`right CAST(price AS BIGINT)`) AS (SELECT price FROM o),
group_aggregate_2 (land, `COUNT(*)`, `SUM(size)`) AS
  (SELECT land, COUNT(*), SUM(size) FROM c WHERE size IN (SELECT price FROM o) GROUP BY land)"""
TABLES = {
    "group_aggregate_1": "land, `COUNT(*)`, `COUNT(price)`",
    "group_aggregate_2": "land, `COUNT(*)`, `SUM(size)`",
    # Equal rows that came one by one have places of their own in the sequence.
    "rank_1 GROUP BY city, price": "city, price, SUM(weight)",
    "join_1": "`left city`, `left price`, weight",
    "join_1_right": "`right city`, `right land`, `right size`, weight",
    "join_2": "`left land`, `left size`, weight",
    "join_2_right": "`right CAST(price AS BIGINT)`, weight",
}


def session(root: Path, **options: str) -> TableEnvironment:
    made = new_session(table__dml_sync="true", **options)
    tables = (
        ("o", "city STRING, price INT, p AS PROCTIME()"),
        ("c", "city STRING, land STRING, size BIGINT"),
    )
    for name, columns in tables:
        ask(
            made,
            f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='{root}/{name}', "
            "'format'='csv', 'csv.null-literal'='')",
        )
    ask(
        made,
        "CREATE TABLE lands (land STRING, n BIGINT, m BIGINT) WITH ('connector'='blackhole')",
        "CREATE TABLE tops (city STRING, price INT) WITH ('connector'='blackhole')",
    )
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, rows in (("o", ORDERS), ("c", CITIES)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text(rows)
    return tmp_path


def states(place: Path) -> dict[str, list[str]]:
    reading = new_session(execution__runtime_mode="batch")
    ask(reading, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{place}')")
    return {
        name: sorted(map(repr, ask(reading, f"SELECT {columns} FROM s.state.{name}")))
        for name, columns in TABLES.items()
    }


@pytest.mark.thorough
def test_a_job_with_rows_goes_on_as_one_that_read_them(spark: SparkSession, root: Path) -> None:
    """Built in one partition, continued in three."""
    made = session(root, parallelism__default="1")
    ask(made, f"CREATE SAVEPOINT '{root}/new' FOR {JOB} WITH STATE ({STATE})")
    assert len(ask(made, f"DESCRIBE SAVEPOINT '{root}/new'")) > 0
    for name, rows in LATER.items():
        (root / name / "b.csv").write_text(rows)
    found = []
    for name, origin in (("with", {"execution__state_recovery__path": f"{root}/new"}), ("without", {})):
        place = {"execution__checkpointing__dir": str(root / name)}
        ask(session(root, parallelism__default="3", **place, **origin), f"EXECUTE {JOB}")
        found.append(states(root / name))
    assert found[0] == found[1]
    assert all(found[0].values())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT land, size, size FROM c WHERE city NOT IN (SELECT city FROM o)",
            "more than the rows of its inp",
        ),
        ("SELECT LISTAGG(city), COUNT(*), COUNT(*) FROM o", "has state of its own"),
    ],
)
def test_what_has_more_than_rows_is_named(root: Path, query: str, why: str) -> None:
    job = f"INSERT INTO lands {query}"
    with pytest.raises(NotSupportedError, match=why):
        ask(session(root), f"CREATE SAVEPOINT '{root}/new' FOR {job} WITH STATE (a AS SELECT 1)")


def test_columns_that_the_operator_derives_are_not_given(root: Path) -> None:
    made = session(root, table__exec__state__ttl="1 d")
    job = "INSERT INTO tops SELECT o.city, price FROM o LEFT JOIN c ON o.city = c.city"
    given = "join_1 (`left city`, `left price`, `$matches`) AS (SELECT city, price, 1 FROM o)"
    right = "join_1_right AS (SELECT 'x' AS `right city`)"
    with pytest.raises(ValidationError, match=r"has no column '\$matches'"):
        ask(made, f"CREATE SAVEPOINT '{root}/new' FOR {job} WITH STATE ({given}, {right})")
