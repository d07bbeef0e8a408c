"""Which LIMITs are tried over parts of their table, and how large the parts are."""

from __future__ import annotations

import pytest

from tests.session.environments import new_session
from tidemill.physical.batch.portions import limit_by_portions
from tidemill.physical.nodes import SortLimit
from tidemill.physical.tree import walk
from tidemill.plan.optimizer import optimize
from tidemill.session.binding import bind
from tidemill.session.environment import TableEnvironment
from tidemill.session.planning import batch

SIZE = 40 << 20
PARTS = [256 << 10, 4 << 20]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """Tables that are large, which nobody reads, and one that is small."""
    folder = tmp_path_factory.mktemp("tables")
    made = new_session(execution__runtime_mode="batch")
    for name, kind, size in (("t", "csv", SIZE), ("j", "json", SIZE), ("s", "csv", 99)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
        made.execute_sql(
            f"CREATE TABLE {name} (v BIGINT, w BIGINT) WITH "
            f"('connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = '{kind}')"
        )
    return made


PLANNED = [
    ("SELECT * FROM t LIMIT 3", PARTS, 3),
    ("SELECT * FROM j LIMIT 3", PARTS, 3),
    ("SELECT v + 1 FROM (SELECT * FROM t WHERE w > 0 LIMIT 4 OFFSET 5)", PARTS, 9),
    ("SELECT * FROM t LIMIT 4 OFFSET 20000", PARTS[1:], 20004),
    ("SELECT * FROM t LIMIT 9000000", [], 0),
    ("SELECT * FROM (SELECT * FROM t LIMIT 3) WHERE v > 0", [], 0),
    ("SELECT * FROM t ORDER BY v LIMIT 3", [], 0),
    ("SELECT COUNT(*) FROM (SELECT * FROM t LIMIT 3)", [], 0),
    ("SELECT DISTINCT v FROM t LIMIT 3", [], 0),
    ("SELECT t.v FROM t JOIN s ON t.v = s.v LIMIT 3", [], 0),
    ("SELECT * FROM t WHERE v = (SELECT MAX(v) FROM t) LIMIT 3", [], 0),
    ("SELECT * FROM t WHERE v IN (SELECT v FROM t) LIMIT 3", [], 0),
    ("SELECT v, (SELECT MAX(v) FROM t) FROM t LIMIT 3", [], 0),
    ("SELECT * FROM t OFFSET 3", [], 0),
    ("SELECT * FROM s LIMIT 3", [], 0),
]


@pytest.mark.parametrize(("query", "sizes", "most"), PLANNED)
def test_parts_of_tables(environment: TableEnvironment, query: str, sizes: list[int], most: int) -> None:
    context = environment.context
    found = limit_by_portions(batch(context, optimize(bind(context, environment.sql_query(query).query))))
    assert (found is not None) == bool(sizes)
    if found is not None:
        assert (list(found.sizes()), found.most) == (sizes, most)


def test_a_part_takes_the_rows_that_are_missing(environment: TableEnvironment) -> None:
    query = environment.sql_query("SELECT v + 1 FROM (SELECT * FROM t WHERE w > 0 LIMIT 4 OFFSET 5)").query
    found = limit_by_portions(batch(environment.context, optimize(bind(environment.context, query))))
    assert found is not None
    limits = [node for node in walk(found.taking(2)) if isinstance(node, SortLimit)]
    assert [(limit.fetch, limit.offset) for limit in limits] == [(2, 0)]
    assert found.scan in list(walk(found.taking(2)))
