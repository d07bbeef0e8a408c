"""One meaning per value from SQL: a stream with and without mini-batch, a batch and plain Python agree."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.hostile_values import NAN, equal, identity, place
from tests.session.environments import new_session
from tests.tiers import sampled
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import ExecutionError
from tidemill.session.environment import TableEnvironment

MODES = {
    "batch": {"execution__runtime_mode": "batch"},
    "mini-batch": {"execution__runtime_mode": "streaming"},
    "per record": {"execution__runtime_mode": "streaming", "table__exec__mini_batch__enabled": "false"},
}
VALUES = (0.0, -0.0, NAN, NAN, 1.5, None, float("inf"))
Bag = Counter[Any]


def text_of(value: float | None) -> str:
    return {"nan": "NaN", "inf": "Infinity", "None": "NULL"}.get(repr(value), repr(value))


@pytest.fixture(params=MODES)
def session(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    lines = "".join(f"{n},{text_of(v)},{text_of(v)}\n" for n, v in enumerate(VALUES))
    (tmp_path / "t.csv").write_text(lines)
    session = new_session(**MODES[request.param])
    session.execute_sql(
        "CREATE TABLE t (n INT, d DOUBLE, f FLOAT) WITH ('connector' = 'filesystem', 'format' = 'csv',"
        f" 'path' = '{tmp_path / 't.csv'}', 'csv.null-literal' = 'NULL')"
    )
    return session


def folded(session: TableEnvironment, query: str) -> Bag:
    """The rows that a result adds up to; a row that is taken back must have come."""
    bag: Bag = Counter()
    for row in session.execute_sql(query).collect():
        key = identity(tuple(row))
        bag[key] += 1 if row.kind in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
        assert bag[key] >= 0, (query, key)
    return +bag


def bag(rows: list[tuple[Any, ...]]) -> Bag:
    return Counter(map(identity, rows))


PAIRS = list(product(enumerate(VALUES), repeat=2))
DISTINCT = {identity(v): v for v in VALUES}
CHOSEN = (0.0, NAN)


def grouped() -> list[tuple[Any, ...]]:
    counts = Counter(map(identity, VALUES))
    return [(v, counts[key]) for key, v in DISTINCT.items()]


def matched(same: bool = False) -> list[tuple[Any, ...]]:
    """``same``: NULL is equal to NULL, as it is inside of ROWs."""
    return [(a, b) for (a, x), (b, y) in PAIRS if equal(x, y) or (same and x is None and y is None)]


def outer() -> list[tuple[Any, ...]]:
    pairs = [(a, b) for a, b in matched() if a != b]
    return [*pairs, *((n, None) for n in range(len(VALUES)) if n not in {a for a, _ in pairs})]


def kept(inside: bool) -> list[tuple[Any, ...]]:
    found = []
    for v in DISTINCT.values():
        there = any(identity(v) == identity(c) for c in CHOSEN)
        if there == inside:
            found.append((v,))
    return found


def ranked() -> list[tuple[Any, ...]]:
    order = sorted(range(len(VALUES)), key=lambda n: (place(VALUES[n]), n))
    return [(n, i + 1) for i, n in enumerate(order)][:4]


THERE = [v for v in VALUES if v is not None]
QUERIES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "group by": ("SELECT {c}, COUNT(*) FROM t GROUP BY {c}", grouped()),
    "distinct": ("SELECT DISTINCT {c} FROM t", [(v,) for v in DISTINCT.values()]),
    "count distinct": ("SELECT COUNT(DISTINCT {c}) FROM t", [(len(DISTINCT) - 1,)]),
    "nested key": (
        "SELECT a, COUNT(*) FROM (SELECT ARRAY[{c}] AS a FROM t) GROUP BY a",
        [([v], n) for v, n in grouped()],
    ),
    "extremes": (
        "SELECT MIN({c}), MAX({c}) FROM t WHERE n < 5",
        [(min(THERE[:5], key=place), max(THERE[:5], key=place))],
    ),
    "least zero": ("SELECT MIN({c}), MAX({c}) FROM t WHERE n < 2", [(-0.0, 0.0)]),
    "sums": ("SELECT SUM({c}), AVG({c}) FROM t WHERE n IN (0, 4, 5)", [(1.5, 0.75)]),
    "join": ("SELECT a.n, b.n FROM t a JOIN t b ON a.{c} = b.{c}", matched()),
    "filter": ("SELECT a.n, b.n FROM t a, t b WHERE a.{c} = b.{c} OR a.n > b.n + 100", matched()),
    "join with nulls": (
        "SELECT a.n, b.n FROM t a JOIN t b ON a.{c} IS NOT DISTINCT FROM b.{c}",
        matched(True),
    ),
    "outer join": ("SELECT a.n, b.n FROM t a LEFT JOIN t b ON a.{c} = b.{c} AND a.n <> b.n", outer()),
    "row join": (
        "SELECT x.n, y.n FROM (SELECT n, ROW({c}, 1) AS r FROM t) x"
        " JOIN (SELECT n, ROW({c}, 1) AS r FROM t) y ON x.r = y.r",
        matched(True),
    ),
    "in": (
        "SELECT n FROM t WHERE {c} IN (SELECT {c} FROM t WHERE n IN (0, 2))",
        [(0,), (1,)],
    ),
    "not in": (
        "SELECT n FROM t WHERE {c} NOT IN (SELECT {c} FROM t WHERE n IN (0, 2))",
        [(2,), (3,), (4,), (6,)],
    ),
    "intersect": ("SELECT {c} FROM t INTERSECT SELECT {c} FROM t WHERE n IN (0, 2)", kept(True)),
    "except": ("SELECT {c} FROM t EXCEPT SELECT {c} FROM t WHERE n IN (0, 2)", kept(False)),
    "union": ("SELECT {c} FROM t UNION SELECT {c} FROM t", [(v,) for v in DISTINCT.values()]),
    "top n": (
        "SELECT n, r FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY {c}, n) AS r FROM t) WHERE r <= 4",
        ranked(),
    ),
    "per value": (
        "SELECT n FROM (SELECT n, ROW_NUMBER() OVER (PARTITION BY {c} ORDER BY n) AS r FROM t) WHERE r = 1",
        [(VALUES.index(v) if v == v else 2,) for v in DISTINCT.values() if repr(v) != "-0.0"] + [(1,)],
    ),
}


AS_FLOAT = ("group by", "extremes", "join", "union", "top n")
"""The queries that run over FLOAT as well as DOUBLE."""


@pytest.mark.one_case
def test_every_query_has_one_answer(session: TableEnvironment) -> None:
    wrong = {}
    for name, (query, rows) in sampled(QUERIES.items()):
        for column in ("d", "f") if name in AS_FLOAT else ("d",):
            found = folded(session, query.format(c=column))
            if found != bag(rows):
                wrong[f"{name} {column}"] = (found, bag(rows))
    assert not wrong


def test_a_float_becomes_a_decimal_by_its_binary_value(session: TableEnvironment) -> None:
    query = "SELECT CAST(CAST(CAST(n AS DOUBLE) + 1234567.891 AS {}) AS DECIMAL(20, 4)) FROM t WHERE n = 0"
    found = [str(*folded(session, query.format(kind))) for kind in ("FLOAT", "DOUBLE")]
    assert found == ["(Decimal('1234567.8750'),)", "(Decimal('1234567.8910'),)"]


@pytest.mark.parametrize(
    "value",
    [
        f"CAST(n + 9 AS DECIMAL(38, 0)) * CAST('{10**37}' AS DECIMAL(38, 0))",
        "CAST(n + 99996 AS DECIMAL(5, 0))",
    ],
)
def test_a_decimal_that_overflows_is_no_null(session: TableEnvironment, value: str) -> None:
    """Where its operands are NOT NULL, so is the column; a condition over it is not met."""
    source = "(SELECT COALESCE(n, 0) AS n FROM t)"
    with pytest.raises(ExecutionError, match="NOT NULL"):
        folded(session, f"SELECT {value} AS y FROM {source}")
    assert folded(session, f"SELECT n FROM {source} WHERE n > 20 OR {value} < 0") == Counter()


def test_long_decimals_are_negated_as_they_are(session: TableEnvironment) -> None:
    widest = "9" * 38
    source = f"(SELECT n, CAST('{widest}' AS DECIMAL(38, 0)) AS x FROM t)"
    query = f"SELECT CAST(- x AS STRING), CAST(ABS(- x) AS STRING) FROM {source} WHERE n = 0"
    assert folded(session, query) == bag([(f"-{widest}", widest)])
