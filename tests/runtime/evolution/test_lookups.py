"""What lies above a lookup join keeps its state when the query shows other columns of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.evolution.changing_query import ChangingQuery, session
from tidemill.errors import StateError

CLICKS = (
    "CREATE TABLE clicks (k INT, a BIGINT, b BIGINT, p AS PROCTIME()) WITH "
    "('connector'='filesystem', 'path'='/c', 'format'='json', 'source.monitor-interval'='1 s')"
)
DIM = (
    "CREATE TABLE dim (id INT, x {0}, y BIGINT, z BIGINT) WITH "
    "('connector'='jdbc', 'url'='jdbc:sqlite:/{1}', 'table-name'='dim')"
)
SQL = (
    "SELECT {} FROM clicks c {} JOIN dim FOR SYSTEM_TIME AS OF c.p AS d ON c.k = d.id AND d.z > {} "
    "GROUP BY {}"
)
SUMS = SQL.format("k, SUM(a * x) AS s, MAX(x) AS m", "LEFT", 1, "k")


def started(root: Path, kind: str = "BIGINT") -> ChangingQuery:
    query = ChangingQuery(root, session(CLICKS, DIM.format(kind, "d")), kind="group-aggregate")
    query.start(SUMS)
    query.number = 3
    return query


def test_other_columns_of_the_table(tmp_path: Path) -> None:
    query = started(tmp_path)
    more = SQL.format("k, MIN(y) AS l, MAX(x) AS m, COUNT(b) AS n, SUM(a * x) AS s", "LEFT", 1, "k")
    found = query.start(more)
    assert found is not None
    assert [(c.part, c.verdict.value) for c in found.changes] == [
        ("", "kept"),
        ("MIN(y)", "added"),
        ("MAX(x)", "kept"),
        ("COUNT(b)", "added"),
        ("SUM(*(a, x))", "kept"),
    ]
    query.number = 4
    fewer = query.start(SQL.format("k, SUM(a * x) AS s", "LEFT", 1, "k"))
    assert fewer is not None
    assert [c.verdict.value for c in fewer.changes] == ["kept", "kept", "dropped", "dropped", "dropped"]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("LEFT JOIN", "JOIN"),
        ("d.z > 1", "d.z > 2"),
        ("c.k = d.id", "c.k = d.y"),
        ("c.k = d.id", "CAST(c.b AS INT) = d.id"),
    ],
)
def test_other_rows_are_refused(tmp_path: Path, then: str, now: str) -> None:
    query = started(tmp_path)
    assert then in SUMS
    with pytest.raises(StateError, match=r"belongs to another query .*it has Lookup"):
        query.start(SUMS.replace(then, now))


def test_another_table_is_refused(tmp_path: Path) -> None:
    query = started(tmp_path)
    query.context = session(CLICKS, DIM.format("BIGINT", "other"))
    with pytest.raises(StateError, match=r"belongs to another query .*Lookup"):
        query.start(SUMS)


def test_wider_types_of_the_table(tmp_path: Path) -> None:
    sql = SQL.format("k, MAX(x) AS m", "LEFT", 1, "k")
    for wide, verdict in (("DOUBLE", "converted"), ("FLOAT", "kept")):
        query = ChangingQuery(
            tmp_path / wide, session(CLICKS, DIM.format("FLOAT", "d")), kind="group-aggregate"
        )
        query.start(sql)
        query.number, query.context = 1, session(CLICKS, DIM.format(wide, "d"))
        found = query.start(sql)
        assert found is not None
        assert [c.verdict.value for c in found.changes] == ["kept", verdict]


@pytest.mark.parametrize(
    ("changed", "named"),
    [("SUM(a * y) AS s, MAX(y) AS m", "LookupJoin"), ("SUM(a) AS s, MAX(b) AS m", r"Calc\(select=\[k, a, b")],
)
def test_found_rows_that_are_kept_have_the_same_columns(tmp_path: Path, changed: str, named: str) -> None:
    """If the input takes rows back. The reason names the operator that keeps rows, not a node above it."""
    cdc = CLICKS.replace("'json'", "'debezium-json'").replace(", 'source.monitor-interval'='1 s'", "")
    query = ChangingQuery(tmp_path, session(cdc, DIM.format("BIGINT", "d")), kind="found-rows")
    query.start(SUMS)
    with pytest.raises(StateError, match=rf"\({named}.* has other columns or calls than what is stored"):
        query.start(SUMS.replace("SUM(a * x) AS s, MAX(x) AS m", changed))
