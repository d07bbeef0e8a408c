"""Which LIMITs are tried over parts of their table, and how large the parts are."""

from __future__ import annotations

import pytest

from tests.session.environments import new_session
from tidemill.physical.batch.nodes import TableSourceScan, all_of
from tidemill.physical.batch.portions import portions
from tidemill.session.environment import TableEnvironment
from tidemill.session.planning import batch, bind, optimized

SIZE = 40 << 20
PARTS = [256 << 10, 4 << 20]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """Tables that are large, which nobody reads, and one that is small."""
    folder = tmp_path_factory.mktemp("tables")
    made = new_session(execution__runtime_mode="batch")
    large = (("t", "csv", SIZE), ("j", "json", SIZE), ("p", "parquet", SIZE))
    for name, kind, size in (*large, ("s", "csv", 99)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
        made.execute_sql(
            f"CREATE TABLE {name} (v BIGINT, w BIGINT) WITH "
            f"('connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = '{kind}')"
        )
    return made


@pytest.mark.parametrize(
    ("query", "sizes", "enough"),
    [
        ("SELECT * FROM t LIMIT 3", PARTS, 3),
        ("SELECT * FROM j LIMIT 3", PARTS, 3),
        ("SELECT v + 1 FROM (SELECT * FROM t WHERE w > 0 LIMIT 4 OFFSET 5)", PARTS, 4),
        ("SELECT * FROM t LIMIT 4 OFFSET 20000", PARTS[1:], 4),
        ("SELECT * FROM t LIMIT 9000000", [], None),
        ("SELECT * FROM (SELECT * FROM t LIMIT 3) WHERE v > 0", [], None),
        ("SELECT * FROM t ORDER BY v LIMIT 3", [], None),
        ("SELECT COUNT(*) FROM (SELECT * FROM t LIMIT 3)", [], None),
        ("SELECT DISTINCT v FROM t LIMIT 3", [], None),
        ("SELECT t.v FROM t JOIN s ON t.v = s.v LIMIT 3", [], None),
        ("SELECT * FROM t WHERE v = (SELECT MAX(v) FROM t) LIMIT 3", [], None),
        ("SELECT * FROM t WHERE v IN (SELECT v FROM t) LIMIT 3", [], None),
        ("SELECT v, (SELECT MAX(v) FROM t) FROM t LIMIT 3", [], None),
        ("SELECT * FROM t OFFSET 3", [], None),
        ("SELECT * FROM p LIMIT 3", [], None),
        ("SELECT * FROM s LIMIT 3", [], None),
    ],
)
def test_parts_of_tables(
    environment: TableEnvironment, query: str, sizes: list[int], enough: int | None
) -> None:
    context = environment.context
    logical = optimized(bind(context, environment.sql_query(query).query))
    found = list(portions(batch(context, logical)))
    scans = [node for plan, _ in found for node in all_of(plan) if isinstance(node, TableSourceScan)]
    assert [scan.portion for scan in scans] == sizes
    assert {rows for _, rows in found} == ({enough} if sizes else set())
