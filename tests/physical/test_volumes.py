"""What of its tables a batch plan is guessed to have to do with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.session.environments import ask, new_session
from tidemill.physical.batch.nodes import TableSourceScan
from tidemill.physical.batch.volumes import exchanged_bytes, read_bytes
from tidemill.physical.nodes import PhysicalNode
from tidemill.physical.tree import walk
from tidemill.plan.optimizer import optimize
from tidemill.session import binding, planning
from tidemill.session.environment import TableEnvironment
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """Files of a thousand bytes each, that nobody reads: facts by day and shop, days, shops."""
    folder = tmp_path_factory.mktemp("volumes")
    made = new_session(execution__runtime_mode="batch")
    for table, columns, partitions in (
        ("facts", "n INT, item INT, day1 INT, shop INT", ("day1=1/shop=1", "day1=2/shop=1", "day1=2/shop=2")),
        ("days", "d INT, m INT", ("",)),
        ("shops", "s INT, city STRING", ("",)),
    ):
        for partition in partitions:
            place = folder / table / partition
            place.mkdir(parents=True)
            Path(place, "1.csv").write_bytes(b"1," * 500)
        by = "PARTITIONED BY (day1, shop) " if table == "facts" else ""
        options = f"'connector' = 'filesystem', 'path' = '{folder}/{table}', 'format' = 'csv'"
        ask(made, f"CREATE TABLE {table} ({columns}) {by}WITH ({options})")
    return made


def planned(environment: TableEnvironment, query: str) -> PhysicalNode:
    context = environment.context
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    return planning.batch(context, optimize(binding.bind(context, statement)))


def guessed(root: PhysicalNode) -> tuple[int, int]:
    """How many times more than is guessed the plan reads of facts, when it prunes while it runs and else."""
    facts, others = 0, 0
    for node in walk(root):
        if isinstance(node, TableSourceScan):
            size = node.most
            assert size is not None
            facts += size * (node.table.path.name == "facts")
            others += size * (node.table.path.name != "facts")
    assert read_bytes(root) == facts + others
    found = []
    for prunes in (True, False):
        left = exchanged_bytes(root, prunes)
        assert left is not None
        found.append(round(facts / (left - others)))
    return found[0], found[1]


CHOSEN = "(SELECT d FROM days WHERE m = 3)"


@pytest.mark.parametrize(
    ("query", "pruned"),
    [
        ("SELECT n FROM facts", (1, 1)),
        ("SELECT n FROM facts WHERE n > 4", (1, 1)),
        ("SELECT n FROM facts WHERE day1 = 4 AND n > 4", (8, 8)),
        ("SELECT n FROM facts WHERE day1 = 4 OR shop = 2", (8, 8)),
        ("SELECT n FROM facts WHERE day1 = 4 OR n > 4", (1, 1)),
        ("SELECT n FROM facts JOIN days ON day1 = d WHERE m = 3", (8, 1)),
        ("SELECT n FROM days JOIN facts ON day1 = d AND shop = m WHERE m + d > 3", (8, 1)),
        (f"SELECT n FROM facts WHERE day1 IN {CHOSEN}", (8, 1)),
        (f"SELECT n FROM facts WHERE day1 NOT IN {CHOSEN}", (1, 1)),
        (f"SELECT n FROM facts WHERE item IN {CHOSEN}", (1, 1)),
        ("SELECT n FROM facts JOIN days ON day1 = d", (1, 1)),
        ("SELECT n FROM facts LEFT JOIN (SELECT * FROM days WHERE m = 3) AS x ON day1 = d", (1, 1)),
        ("SELECT n FROM days LEFT JOIN facts ON day1 = d WHERE m = 3", (1, 1)),
        ("SELECT n FROM facts JOIN days ON day1 + 0 = d WHERE m = 3", (1, 1)),
        (
            f"SELECT * FROM (SELECT day1 AS x, SUM(n) FROM facts GROUP BY day1) AS t WHERE x IN {CHOSEN}",
            (8, 1),
        ),
        (
            "SELECT * FROM (SELECT day1 AS x, n FROM facts UNION ALL SELECT d, m FROM days) AS t "
            f"WHERE x IN {CHOSEN}",
            (8, 1),
        ),
        ("SELECT n FROM facts JOIN days ON day1 = d JOIN shops ON m = s WHERE city = 'x'", (1, 1)),
        ("SELECT n FROM facts JOIN shops ON shop = s JOIN days ON day1 = d WHERE city = 'x'", (8, 1)),
    ],
)
def test_where_partitions_are_skipped(
    environment: TableEnvironment, query: str, pruned: tuple[int, int]
) -> None:
    assert guessed(planned(environment, query)) == pruned


def test_a_table_that_is_read_twice(environment: TableEnvironment) -> None:
    """Each reading is judged by itself."""
    query = f"SELECT n FROM facts WHERE day1 IN {CHOSEN} UNION ALL SELECT item FROM facts"
    assert guessed(planned(environment, query)) == (2, 1)


def test_what_is_not_known(environment: TableEnvironment) -> None:
    ask(
        environment,
        "CREATE TEMPORARY TABLE made (x INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')",
    )
    root = planned(environment, f"SELECT n FROM facts JOIN made ON x = n WHERE day1 IN {CHOSEN}")
    assert read_bytes(root) is None
    assert exchanged_bytes(root, True) is None
