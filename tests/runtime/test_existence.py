"""EXISTS and IN as values, and of what an aggregation gives: beside Python's any(), in both modes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import new_session
from tidemill.physical.batch.nodes import Join
from tidemill.physical.tree import walk
from tidemill.plan.nodes import JoinKind
from tidemill.plan.optimizer import optimize
from tidemill.runtime.spark.batch_frames.existence import existence
from tidemill.session import binding, planning
from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

Row = tuple[int, int | None, int]
"""id, a, b."""


def rows(seed: int, count: int) -> list[Row]:
    choose = random.Random(seed)
    return [(i, choose.choice((None, 1, 2, 3, 4, 5, 6)), choose.randrange(4)) for i in range(count)]


L, R, S = rows(1, 12), rows(2, 9), rows(3, 5)
EMPTY: list[Row] = []


def met(row: Row, others: list[Row]) -> list[Row]:
    return [o for o in others if None not in (row[1], o[1]) and row[1] == o[1]]


def following(row: Row) -> Row:
    return row[0], None if row[1] is None else row[1] + 1, row[2]


def marks(row: Row) -> bool:
    return bool(met(row, R)) or bool(met(row, S))


def among(value: int | None, members: list[int | None]) -> bool | None:
    if any(value is not None and value == m for m in members):
        return True
    return None if members and (value is None or None in members) else False


VALUES: tuple[tuple[str, Callable[[Row], Any]], ...] = (
    (
        "EXISTS (SELECT 1 FROM r WHERE r.a = l.a) OR EXISTS (SELECT 1 FROM s WHERE s.a = l.a)",
        marks,
    ),
    (
        "EXISTS (SELECT 1 FROM r WHERE r.a = l.a AND r.b > 1)",
        lambda x: any(o[2] > 1 for o in met(x, R)),
    ),
    (
        "NOT EXISTS (SELECT 1 FROM r WHERE r.a = l.a AND r.b = l.b)",
        lambda x: not any(o[2] == x[2] for o in met(x, R)),
    ),
    (
        "EXISTS (SELECT 1 FROM r WHERE r.b > l.b AND r.a = l.a)",
        lambda x: any(o[2] > x[2] for o in met(x, R)),
    ),
    (
        "EXISTS (SELECT 1 FROM r WHERE r.a = l.a + 1)",
        lambda x: bool(met(following(x), R)),
    ),
    ("EXISTS (SELECT 1 FROM r WHERE r.big = l.a)", lambda x: bool(met(x, R))),
    ("EXISTS (SELECT 1 FROM e WHERE e.a = l.a)", lambda x: False),
    ("EXISTS (SELECT 1 FROM r WHERE r.b > 2)", lambda x: any(o[2] > 2 for o in R)),
    ("b IN (SELECT b FROM r)", lambda x: x[2] in {o[2] for o in R}),
    ("a IN (SELECT a FROM r)", lambda x: among(x[1], [o[1] for o in R])),
    ("EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a)", lambda x: True),
    ("EXISTS (SELECT MAX(r.b) FROM e AS r WHERE r.a = l.a)", lambda x: True),
    (
        "EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a HAVING COUNT(*) = 0)",
        lambda x: not met(x, R),
    ),
    (
        "EXISTS (SELECT MAX(b) FROM r WHERE r.a = l.a HAVING MAX(b) > 1)",
        lambda x: any(o[2] > 1 for o in met(x, R)),
    ),
    (
        "EXISTS (SELECT a FROM r WHERE r.a = l.a GROUP BY a HAVING COUNT(*) > 1)",
        lambda x: len(met(x, R)) > 1,
    ),
    ("EXISTS (SELECT 1 FROM r WHERE r.a = l.a LIMIT 0)", lambda x: False),
)
FILTERS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    ("EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a)", lambda x: True),
    ("NOT EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a)", lambda x: False),
    ("EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a HAVING COUNT(*) = 0)", lambda x: not met(x, R)),
    ("NOT EXISTS (SELECT COUNT(*) FROM r WHERE r.a = l.a HAVING COUNT(*) = 0)", lambda x: bool(met(x, R))),
    ("EXISTS (SELECT MAX(b) FROM r HAVING COUNT(*) > 100)", lambda x: False),
    ("EXISTS (SELECT MAX(b) FROM r HAVING COUNT(*) > 1)", lambda x: True),
    ("b > 2 OR EXISTS (SELECT 1 FROM r WHERE r.a = l.a)", lambda x: x[2] > 2 or bool(met(x, R))),
)


def environment(folder: Path, **options: str) -> TableEnvironment:
    """In a stream each row is another one first, which is taken back."""
    made = new_session(parallelism__default="2", **options)
    batch = options.get("execution__runtime_mode") == "batch"
    for name, content in (("l", L), ("r", R), ("s", S), ("e", EMPTY)):
        first = [] if batch else [(i, a if a is None else 2, 1) for i, a, _ in content]
        lines = (f"{i},{'' if a is None else a},{b}\n" for i, a, b in [*first, *content])
        (folder / f"{name}.csv").write_text("".join(lines))
        made.execute_sql(
            f"CREATE TABLE {name}_log (id INT, a INT, b INT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/{name}.csv', 'format' = 'csv', 'csv.null-literal' = '')"
        )
        last = f"SELECT id, LAST_VALUE(a) AS a, LAST_VALUE(b) AS b FROM {name}_log GROUP BY id"
        source = f"{name}_log" if batch else f"({last})"
        made.execute_sql(f"CREATE VIEW {name} AS SELECT *, CAST(a AS BIGINT) AS big FROM {source}")
    return made


def answer(session: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    result = session.execute_sql(query)
    return sorted(folded(result.fields, result.changes()), key=lambda row: row[0])


def check_values(session: TableEnvironment, chosen: Sequence[tuple[str, Callable[[Row], Any]]]) -> None:
    columns = ", ".join(f"{text} AS v{i}" for i, (text, _) in enumerate(chosen))
    expected = [(row[0], *(value(row) for _, value in chosen)) for row in L]
    assert answer(session, f"SELECT id, {columns} FROM l") == expected


def check_filters(session: TableEnvironment, chosen: Sequence[tuple[str, Callable[[Row], bool]]]) -> None:
    for condition, holds in chosen:
        found = answer(session, f"SELECT id FROM l WHERE {condition}")
        assert found == [(row[0],) for row in L if holds(row)], condition


@pytest.mark.thorough
def test_in_batch(spark: SparkSession, tmp_path: Path) -> None:
    session = environment(tmp_path, execution__runtime_mode="batch")
    for begin in range(0, len(VALUES), 4):
        check_values(session, VALUES[begin : begin + 4])
    check_filters(session, FILTERS)
    both = "(SELECT id, a FROM l UNION ALL SELECT id + 100, a FROM l)"
    found = answer(session, f"SELECT id, {VALUES[0][0]} AS v FROM {both} AS l")
    assert found == [(row[0] + more, marks(row)) for more in (0, 100) for row in L]


def test_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    session = environment(tmp_path)
    for begin in range(0, len(VALUES), 4):
        check_values(session, VALUES[begin : begin + 4])
    check_filters(session, FILTERS[2:4])


@pytest.mark.thorough
def test_a_few_rows_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    session = environment(tmp_path, tidemill__epoch__max_rows="8")
    check_values(session, [VALUES[0], VALUES[2], VALUES[12]])


def asked(session: TableEnvironment, query: str) -> list[bool]:
    """Of the plan's outer joins, which are nothing but the question whether there is a row."""
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    plan = optimize(binding.bind(session.context, statement))
    joins = [x for x in walk(planning.batch(session.context, plan)) if isinstance(x, Join)]
    return [existence(x) is not None for x in joins if x.kind is JoinKind.LEFT]


def test_which_joins_are_questions(spark: SparkSession, tmp_path: Path) -> None:
    session = environment(tmp_path, execution__runtime_mode="batch")
    assert asked(session, f"SELECT {VALUES[0][0]} FROM l") == [True, True]
    # What a member that is NULL does is counted beside it.
    assert asked(session, "SELECT b IN (SELECT b FROM r) FROM l") == [True, False]
    float_key = "(SELECT 1 FROM r WHERE CAST(r.a AS DOUBLE) = CAST(l.a AS DOUBLE))"
    for query in (
        f"SELECT EXISTS {float_key} FROM l",
        "SELECT l.id, d.a FROM l LEFT JOIN (SELECT DISTINCT a, b FROM r) AS d ON l.a = d.a",
        "SELECT l.id, d.n FROM l LEFT JOIN (SELECT a, COUNT(*) AS n FROM r GROUP BY a) AS d ON l.a = d.a",
        "SELECT l.id, d.a FROM l LEFT JOIN (SELECT DISTINCT a FROM r) AS d ON l.a = d.a AND l.b > d.a",
    ):
        assert asked(session, query) == [False], query
    # DISTINCT's own rows, which are the left's values where they are met.
    query = "SELECT l.id, d.a FROM l LEFT JOIN (SELECT DISTINCT a FROM r) AS d ON l.a = d.a"
    assert asked(session, query) == [True]
    assert answer(session, query) == [(x[0], x[1] if met(x, R) else None) for x in L]
