"""NOT IN in both modes: never true where it cannot be told, always true where there is nothing to compare.

A list of values is compared value by value, and one NULL makes it unknown. A ROW is one value: whether two
are equal is always known, and NULL inside of one equals NULL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from operator import eq
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tests.tiers import sampled
from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded

Row = tuple[int | None, ...]
LEFT: tuple[Row, ...] = ((1, 2), (1, 5), (1, None), (None, 2), (None, None), (3, 4))
RIGHTS: tuple[tuple[Row, ...], ...] = (
    (),
    ((1, 2), (7, 8), (1, 2)),
    ((1, 2), (None, None)),
    ((1, None), (7, 8)),
    ((None, 5),),
    ((7, 8),),
)
Same = Callable[[Row, Row], bool | None]


def equal(row: Row, other: Row) -> bool | None:
    """Whether all of the values are equal, None where that cannot be told."""
    found = [None if a is None or b is None else a == b for a, b in zip(row, other, strict=True)]
    return False if False in found else None if None in found else True


QUERIES: dict[str, tuple[int, ...]] = {
    "a NOT IN (SELECT x FROM {})": (0,),
    "(a, b) NOT IN (SELECT x, y FROM {})": (0, 1),
    "1 NOT IN (SELECT x FROM {})": (),
    "a + 1 NOT IN (SELECT x + 1 FROM {})": (0,),
    "CAST(a AS DOUBLE) NOT IN (SELECT CAST(x AS DOUBLE) FROM {})": (0,),
    "NOT EXISTS (SELECT 1 FROM {} AS r WHERE a = x OR a IS NULL OR x IS NULL)": (0,),
}


def text(rows: tuple[Row, ...]) -> str:
    """The rows as VALUES; of none of them an empty table."""
    shown = ["(" + ", ".join("CAST(NULL AS INT)" if v is None else str(v) for v in r) + ")" for r in rows]
    return ", ".join(shown or ["(0, 0)"])


def kept(row: Row, right: tuple[Row, ...], columns: tuple[int, ...], same: Same = equal) -> bool:
    own = tuple(row[c] for c in columns) if columns else (1,)
    return all(same(own, other[: len(own)]) is False for other in right)


@pytest.fixture(scope="module")
def environment(spark: SparkSession) -> TableEnvironment:
    made = new_session(parallelism__default="2")
    made.execute_sql(f"CREATE VIEW l AS SELECT *, ROW(a, b) AS r FROM (VALUES {text(LEFT)}) AS t(a, b)")
    for number, right in enumerate(RIGHTS):
        made.execute_sql(
            f"CREATE VIEW r{number} AS SELECT *, ROW(x, y) AS s FROM (VALUES {text(right)}) AS t(x, y)"
            + ("" if right else " WHERE x > 0")
        )
    return made


LISTS = "(a, b) IN (SELECT x, y FROM {})"
ROWS = "r IN (SELECT s FROM {})"


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_not_in(environment: TableEnvironment, mode: str) -> None:
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    for (number, right), (condition, columns) in sampled(product(enumerate(RIGHTS), QUERIES.items())):
        result = environment.execute_sql(f"SELECT a, b FROM l WHERE {condition.format(f'r{number}')}")
        found = folded(result.fields, result.changes())
        assert set(found) == {row for row in LEFT if kept(row, right, columns)}, (condition, right)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(("condition", "same"), [(LISTS, equal), (ROWS, eq)])
def test_in_as_a_value(environment: TableEnvironment, mode: str, condition: str, same: Same) -> None:
    """NULL where no row is equal and one is not known to differ."""
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    for number, right in enumerate(RIGHTS):
        result = environment.execute_sql(f"SELECT a, b, {condition.format(f'r{number}')} FROM l")
        found = folded(result.fields, result.changes())
        told = {row: {same(row, other) for other in right} for row in LEFT}
        wanted = {(*row, True if True in t else None if None in t else False) for row, t in told.items()}
        assert set(found) == wanted, right


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_not_in_of_rows(environment: TableEnvironment, mode: str) -> None:
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    for number, right in enumerate(RIGHTS):
        result = environment.execute_sql(f"SELECT a, b FROM l WHERE NOT {ROWS.format(f'r{number}')}")
        found = folded(result.fields, result.changes())
        assert set(found) == {row for row in LEFT if kept(row, right, (0, 1), eq)}, right


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_not_in_beside_another_key(environment: TableEnvironment, mode: str) -> None:
    """The subquery sees the rows of the outer row's own b, which is of none where it is NULL."""
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    for number, right in enumerate(RIGHTS):
        query = f"SELECT a, b FROM l WHERE a NOT IN (SELECT x FROM r{number} WHERE y = b)"
        result = environment.execute_sql(query)
        found = folded(result.fields, result.changes())
        seen = {row: tuple(r for r in right if r[1] is not None and r[1] == row[1]) for row in LEFT}
        assert set(found) == {row for row in LEFT if kept(row, seen[row], (0,))}, right


@pytest.mark.parametrize("mode", ["streaming", "batch"])
@pytest.mark.parametrize(("left", "expected"), [("x < 0", {(1,), (7,)}), ("x > 0", set())])
def test_what_is_null_whatever_the_rows(
    spark: SparkSession, tmp_path: Path, mode: str, left: str, expected: set[Row]
) -> None:
    """Spark knows that the sum is NULL, and that its own NOT IN may send the few rows."""
    made = new_session(execution__runtime_mode=mode)
    (tmp_path / "r.csv").write_text("1,2\n7,8\n")
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}/r.csv', 'format' = 'csv'"
    made.execute_sql(f"CREATE TABLE r (x INT, y INT) WITH ({files})")
    sums = "SELECT x, SUM(y) FILTER (WHERE x IS DISTINCT FROM x) AS s FROM r GROUP BY x"
    result = made.execute_sql(f"SELECT x FROM ({sums}) WHERE s NOT IN (SELECT y FROM r WHERE {left})")
    assert set(folded(result.fields, result.changes())) == expected
