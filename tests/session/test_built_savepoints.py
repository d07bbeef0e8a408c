"""CREATE SAVEPOINT ... FOR INSERT ... WITH STATE: a job that starts with history."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotPermittedError, NotSupportedError, StateError, ValidationError
from tidemill.files.fence import Fence
from tidemill.session.environment import TableEnvironment
from tidemill.session.permissions import Permissions

CITIES = (
    "SELECT city, COUNT(*), SUM(price), COUNT(DISTINCT buyer), AVG(price), MAX(price) FROM t GROUP BY city"
)
JOB = f"STATEMENT SET BEGIN INSERT INTO sums {CITIES}; INSERT INTO whole SELECT COUNT(*) FROM t; END"
RECORDS = """group_aggregate_1 AS (SELECT city, COUNT(*) AS `COUNT(*)`, SUM(price) AS `SUM(price)`,
 COUNT(price) AS `COUNT(price)`, COUNT(DISTINCT buyer) AS `COUNT(DISTINCT buyer)`, MAX(price) AS `MAX(price)`
 FROM t GROUP BY city)"""
BUYERS = "group_aggregate_1_distinct_buyer AS (SELECT DISTINCT city, buyer FROM t WHERE buyer IS NOT NULL)"
WHOLE = "group_aggregate_2 (`COUNT(*)`) AS (SELECT COUNT(*) FROM t)"
TABLES = ("group_aggregate_1", "group_aggregate_1_distinct_buyer", "group_aggregate_2")
HISTORY = "".join(f"c{i % 3},u{i % 4},{i}\n" for i in range(30)) + "c0,,\n,u1,5\n"
LATER = "c1,u9,5\nc7,u1,5\nc1,u1,7\n,u1,6\n"


def session(root: Path, **options: str) -> TableEnvironment:
    made = new_session(parallelism__default="2", table__dml_sync="true", **options)
    ask(
        made,
        f"CREATE TABLE t (city STRING, buyer STRING, price INT) WITH ('connector'='filesystem', "
        f"'path'='{root}/in', 'format'='csv', 'csv.null-literal'='')",
        "CREATE TABLE sums (city STRING, n BIGINT, total INT, buyers BIGINT, mean INT, top INT) "
        "WITH ('connector'='blackhole')",
        "CREATE TABLE whole (n BIGINT) WITH ('connector'='blackhole')",
    )
    return made


def create(path: Path, *tables: str, job: str = JOB) -> str:
    return f"CREATE SAVEPOINT '{path}' FOR {job} WITH STATE ({', '.join(tables)})"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(HISTORY)
    return tmp_path


@pytest.mark.thorough
def test_a_job_with_history_goes_on_as_one_that_read_it(spark: SparkSession, root: Path) -> None:
    built = session(root)
    assert ask(built, create(root / "new", WHOLE, RECORDS, BUYERS)) == [(str(root / "new"),)]
    (root / "in" / "b.csv").write_text(LATER)
    found = []
    for name, origin in (("with", {"execution__state_recovery__path": str(root / "new")}), ("without", {})):
        running = session(root, execution__checkpointing__dir=str(root / name), **origin)
        ask(running, f"EXECUTE {JOB}")
        reading = new_session(execution__runtime_mode="batch")
        ask(reading, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{root / name}')")
        found.append([sorted(map(repr, ask(reading, f"SELECT * FROM s.state.{t}"))) for t in TABLES])
    assert found[0] == found[1]
    assert len(found[0][0]) == 5
    epochs = "SELECT COUNT(*) AS n, MAX(epoch) AS e FROM s.state.epochs"
    assert ask(reading, epochs) == [(1, 1)], "it read all in one epoch"


@pytest.mark.thorough
def test_state_that_does_not_fit_leaves_nothing(spark: SparkSession, root: Path) -> None:
    made, place = session(root), root / "new"
    counted = RECORDS.replace("COUNT(DISTINCT buyer) AS", "COUNT(DISTINCT buyer) + 1 AS")
    told = r"column 'COUNT\(DISTINCT buyer\)' is not what the table of its values tells. The row: .*city"
    other = BUYERS.replace("IS NOT NULL)", "IS NOT NULL UNION ALL SELECT 'x', 'u1')")
    for tables, why in (
        ((counted, BUYERS, WHOLE), told),
        ((RECORDS, other, WHOLE), "lacks keys that"),
        ((RECORDS.replace("FROM t", "FROM t WHERE city = 'c0'"), BUYERS, WHOLE), "lacks keys that"),
        ((RECORDS, BUYERS.replace("DISTINCT", ""), WHOLE), "Two rows for .* have the same key"),
    ):
        with pytest.raises(ValidationError, match=why):
            ask(made, create(place, *tables))
        assert not place.exists()


def test_each_table_is_given_once_with_all_its_columns(spark: SparkSession, root: Path) -> None:
    made, place = session(root), root / "new"
    for tables, why in (
        ((RECORDS,), "lacks the table 'group_aggregate_1_distinct_buyer' with the columns `city`, `buyer`"),
        ((RECORDS, BUYERS, "nosuch AS SELECT 1"), "The job has no table of state 'nosuch'"),
        ((WHOLE, WHOLE, RECORDS, BUYERS), "State 'group_aggregate_2' is given twice"),
        ((RECORDS, BUYERS, "group_aggregate_2 AS SELECT 1 AS a"), r"lacks the column 'COUNT\(\*\)'"),
        ((RECORDS, BUYERS, "group_aggregate_2 (`COUNT(*)`, n) AS SELECT 1, 2"), "has no column 'n'"),
        ((RECORDS, BUYERS, "group_aggregate_2 (`COUNT(*)`) AS SELECT 'x'"), "Incompatible types"),
    ):
        with pytest.raises(ValidationError, match=why) as raised:
            ask(made, create(place, *tables))
        assert raised.value.position is not None
    place.mkdir()
    (place / "other").touch()
    with pytest.raises(StateError, match="cannot be written: the directory is not empty"):
        ask(made, create(place, RECORDS, BUYERS, WHOLE))
    assert (place / "other").exists()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT DISTINCT city, 1, 1, 1, 1, 1 FROM t WHERE city NOT IN (SELECT buyer FROM t)",
            "State of join_1, .*Join.* more than the rows of its inputs",
        ),
        (
            "SELECT city, COUNT(DISTINCT buyer) FILTER (WHERE price > 1), 1, 1, 1, 1 FROM t GROUP BY city",
            "FILTER",
        ),
        ("SELECT LISTAGG(city), 1, 1, 1, 1, 1 FROM t", "'LISTAGG.*' has state of its own"),
        ("SELECT city, SUM(DISTINCT price), 1, 1, 1, 1 FROM t GROUP BY city", "'SUM.*' has state of its own"),
    ],
)
def test_what_cannot_be_built_is_named(spark: SparkSession, root: Path, query: str, why: str) -> None:
    with pytest.raises(NotSupportedError, match=why):
        ask(session(root), create(root / "new", "a AS SELECT 1", job=f"INSERT INTO sums {query}"))


def test_a_place_that_is_not_permitted(root: Path) -> None:
    made = session(root)
    made.context.permissions = Permissions(fence=Fence(allowed=("/elsewhere",)))
    with pytest.raises(NotPermittedError, match="CREATE SAVEPOINT names a path"):
        ask(made, create(root / "new", WHOLE))
