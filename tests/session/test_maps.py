"""Whatever makes a map makes equal ones one value: functions, casts, aggregates, programs, changelogs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.session.differential_values import bag, folded
from tests.session.environments import ask, new_session
from tidemill import AggregateFunction, udaf, udf
from tidemill.errors import NotSupportedError
from tidemill.session.environment import TableEnvironment

MODES = pytest.mark.parametrize("mode", ["batch", "streaming"])
ZERO, MINUS, MISSING = (f"CAST({x} AS DOUBLE)" for x in ("0", "'-0.0'", "NULL"))
SAME = {
    "MAP['b', 2, 'a', 1]": "MAP['a', 1, 'b', 2]",
    "MAP['a', 0, 'b', 2, 'a', 1]": "MAP['b', 2, 'a', 1]",
    f"MAP[{ZERO}, 1, {MINUS}, 2, {MISSING}, 3]": f"MAP[{MISSING}, 3, {MINUS}, 2, {ZERO}, 1]",
    "MAP[MAP['a', 1, 'b', 2], 'x', MAP['a', 0], 'y']": "MAP[MAP['a', 0], 'y', MAP['b', 2, 'a', 1], 'x']",
    "ARRAY[ROW(MAP['b', 2, 'a', 1], 1)]": "ARRAY[ROW(MAP['a', 1, 'b', 2], 1)]",
    "MAP_FROM_ARRAYS(ARRAY['b', 'a'], ARRAY[2, 1])": "MAP_FROM_ARRAYS(ARRAY['a', 'b'], ARRAY[1, 2])",
    "MAP_UNION(MAP['b', 2], MAP['a', 1])": "MAP_UNION(MAP['a', 1, 'b', 3], MAP['b', 2])",
    f"MAP_UNION(MAP[{ZERO}, 1], MAP[{MINUS}, 2])": f"MAP_UNION(MAP[{MINUS}, 2], MAP[{ZERO}, 1])",
    "STR_TO_MAP('b=2,a=1')": "STR_TO_MAP('a=1,b=2')",
    "CAST(MAP[9, 1, 10, 2] AS MAP<STRING, INT>)": "MAP['9', 1, '10', 2]",
    "CAST(MAP['a', MAP[9, 1, 10, 2]] AS MAP<STRING, MAP<STRING, INT>>)": "MAP['a', MAP['10', 2, '9', 1]]",
    "CAST(MAP[1.2, 'x', 1.4, 'y', 0.5, 'z'] AS MAP<INT, STRING>)": "MAP[0, 'z', 1, 'y']",
}
DIFFERENT = {
    "MAP['b', 2, 'a', 1]": "MAP['a', 2, 'b', 1]",
    f"MAP[{ZERO}, 1, {MINUS}, 2]": f"MAP[{ZERO}, 2, {MINUS}, 1]",
    "MAP['a', CAST(NULL AS INT)]": "MAP['a', 0]",
    "MAP['a', 1]": "MAP['a', 1, 'b', 1]",
}


@pytest.mark.one_case
@MODES
def test_functions_that_make_maps(spark: SparkSession, mode: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    for pairs, expected in ((SAME, True), (DIFFERENT, False)):
        tests = [f"{a} = {b}" for a, b in pairs.items()]
        tests += [f"CAST({a} AS STRING) = CAST({b} AS STRING)" for a, b in pairs.items()]
        (found,) = ask(session, f"SELECT {', '.join(tests)}")
        assert dict(zip(tests, found, strict=True)) == dict.fromkeys(tests, expected)


@pytest.mark.one_case
@MODES
def test_multisets(spark: SparkSession, mode: str) -> None:
    """COLLECT of the same values in another order; both zeros are counted on their own."""
    session = new_session(execution__runtime_mode=mode)
    session.execute_sql(
        "CREATE TEMPORARY VIEW c AS SELECT k, COLLECT(v) AS c, COLLECT(r) AS r FROM"
        f" (SELECT k, v, ROW(v, k / k) AS r FROM (VALUES (1, {ZERO}), (1, 1e0), (1, {MINUS}), (1, 1e0),"
        f" (2, 1e0), (2, {MINUS}), (2, 1e0), (2, {ZERO}), (3, {ZERO}), (3, 1e0), (3, {ZERO}), (3, 1e0))"
        " AS t (k, v)) GROUP BY k"
    )
    texts = folded(session, "SELECT k, CAST(c AS STRING) FROM c")
    both = "{-0.0=1, 0.0=1, 1.0=2}"
    assert texts == bag([(1, both), (2, both), (3, "{0.0=2, 1.0=2}")])
    for column in ("c", "r"):
        groups = f"SELECT MIN(k), COUNT(*) FROM c GROUP BY {column}"
        assert folded(session, groups) == bag([(1, 2), (3, 1)])
        pairs = f"SELECT a.k, b.k FROM c AS a JOIN c AS b ON a.{column} = b.{column}"
        assert folded(session, pairs) == bag([(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)])


@MODES
@pytest.mark.parametrize("call", ["CARDINALITY", "ELEMENT"])
def test_what_no_multiset_is_asked(spark: SparkSession, mode: str, call: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    with pytest.raises(NotSupportedError, match=f"{call} of a MULTISET<INT NOT NULL>"):
        session.execute_sql(f"SELECT {call}(COLLECT(v)) FROM (VALUES 1, 2) AS t (v)")


@udf(input_types=["STRING", "INT"], result_type="MAP<STRING, INT>")
def mapped(letters: str, first: int) -> dict[str, int]:
    return {letter: first + ord(letter) for letter in letters}


@udf(input_types=["STRING"], result_type="ARRAY<MAP<STRING, INT>>", func_type="arrow")
def mapped_arrow(letters: pa.Array) -> pa.Array:
    found = [None if text is None else [[(letter, 1) for letter in text]] for text in letters.to_pylist()]
    return pa.array(found, pa.list_(pa.map_(pa.string(), pa.int32())))


class Seen(AggregateFunction):
    """How often each text came, by arrival."""

    def create_accumulator(self) -> Any:
        return {}

    def accumulate(self, held: Any, text: str) -> Any:
        return {**held, text: held.get(text, 0) + 1}

    def get_value(self, held: Any) -> Any:
        return held


@pytest.mark.thorough
@MODES
def test_functions_of_the_users_own(spark: SparkSession, mode: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    session.create_temporary_function("mapped", mapped)
    session.create_temporary_function("mapped_arrow", mapped_arrow)
    seen = udaf(
        Seen(), input_types=["STRING"], result_type="MAP<STRING, INT>", accumulator_type="MAP<STRING, INT>"
    )
    session.create_temporary_function("seen", seen)
    rows = "(VALUES (1, 'ba'), (1, 'c'), (2, 'c'), (2, 'ba'), (3, 'ab')) AS t (k, s)"
    for call, first in (("mapped(s, 1)", 1), ("mapped_arrow(s)", 1)):
        found = folded(
            session, f"SELECT MIN(k), COUNT(*) FROM (SELECT k, {call} AS m, s FROM {rows}) GROUP BY m"
        )
        assert found == bag([(first, 3), (1, 2)])
    groups = f"SELECT COUNT(*) FROM (SELECT k, seen(s) AS m FROM {rows} GROUP BY k) GROUP BY m"
    assert folded(session, groups) == bag([(2,), (1,)])


@MODES
def test_values_of_the_program(spark: SparkSession, mode: str) -> None:
    session = new_session(execution__runtime_mode=mode)
    maps = [{"b": 2, "a": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, None]
    session.create_temporary_view(
        "python", session.from_elements([(m,) for m in maps], "ROW<m MAP<STRING, INT>>")
    )
    frame = spark.createDataFrame([([m],) for m in maps], "m ARRAY<MAP<STRING, INT>>")
    session.create_temporary_view("spark", frame)
    for view in ("python", "spark"):
        assert folded(session, f"SELECT COUNT(*) FROM {view} GROUP BY m") == bag([(2,), (1,), (1,)])


@pytest.mark.thorough
def test_a_map_is_taken_back_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    """Each change comes in an epoch of its own; the key's entries and the row's come in any order."""

    def row(n: int, *entries: tuple[str, int]) -> dict[str, Any]:
        return {"n": n, "m": dict(entries)}

    a, b, c = ("a", 1), ("b", 2), ("c", 3)
    events = [
        {"op": "c", "after": row(1, a, b)},
        {"op": "c", "after": row(2, b, a)},
        {"op": "u", "before": row(1, b, a), "after": row(1, c, a)},
        {"op": "c", "after": row(3, a, c)},
        {"op": "d", "before": row(2, a, b)},
    ]
    (tmp_path / "t").mkdir()
    for number, event in enumerate(events):
        (tmp_path / "t" / f"{number}.json").write_text(json.dumps(event) + "\n")
    session = new_session(tidemill__epoch__max_rows="1")
    session.execute_sql(
        "CREATE TABLE t (n INT, m MAP<STRING, INT>) WITH ('connector' = 'filesystem',"
        f" 'path' = '{tmp_path / 't'}', 'format' = 'debezium-json')"
    )
    last = {"a": 1, "c": 3}
    assert folded(session, "SELECT n, m FROM t") == bag([(1, last), (3, last)])
    assert folded(session, "SELECT m, COUNT(*), SUM(n) FROM t GROUP BY m") == bag([(last, 2, 4)])
    assert folded(session, "SELECT DISTINCT m FROM t") == bag([(last,)])
    pairs = "SELECT x.n, y.n FROM t AS x JOIN t AS y ON x.m = y.m AND x.n < y.n"
    assert folded(session, pairs) == bag([(1, 3)])


def test_plans_without_maps_are_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    session = new_session(execution__runtime_mode="batch")
    (tmp_path / "t.json").write_text('{"n": 1, "m": {"b": 1, "a": 1}}\n')
    session.execute_sql(
        "CREATE TABLE t (n INT, m MAP<STRING, INT>) WITH ('connector' = 'filesystem',"
        f" 'path' = '{tmp_path / 't.json'}', 'format' = 'json')"
    )
    assert ordered(session, "SELECT m FROM t")
    assert not ordered(session, "SELECT n FROM t")


def ordered(session: TableEnvironment, query: str) -> bool:
    """Whether Spark's plan sorts entries."""
    frame = session.sql_query(query).to_spark()
    return "sort_array" in frame._jdf.queryExecution().toString()
