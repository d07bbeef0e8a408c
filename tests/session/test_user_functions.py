"""CREATE FUNCTION ... LANGUAGE PYTHON: wherever a function may stand, in both modes, and its errors."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.runtime.running import folded
from tests.session.environments import ask
from tidemill.errors import ExecutionError, NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

SAMPLES = "tests.user_functions.samples"
FUNCTIONS = {
    "count_char": "count_char",
    "count_char_arrow": "count_char_arrow",
    "plus": "plus",
    "third": "third",
    "kind_of": "kind",
    "seven": "seven",
    "fails": "fails",
    "leaves": "leaves",
    "text_for_number": "text_for_number",
    "too_short": "too_short",
    "untyped": "untyped",
    "split_words": "split_words",
    "words": "words",
    "wavg": "WeightedAverage",
    "total": "Total",
    "joined": "Joined",
    "largest": "Largest",
}
T = (
    "CREATE TEMPORARY VIEW t AS SELECT * FROM (VALUES"
    " (1, 'a b', CAST(2 AS BIGINT)), (2, 'bb c', 3), (1, CAST(NULL AS STRING), 4)) AS v(k, s, n)"
)
SUMS = "(SELECT k, SUM(n) AS n FROM t GROUP BY k)"


def session(mode: str, **options: str) -> TableEnvironment:
    found = TableEnvironment.create({"parallelism.default": "1", **options}, runtime_mode=mode)
    for name, attribute in FUNCTIONS.items():
        found.execute_sql(f"CREATE FUNCTION {name} AS '{SAMPLES}.{attribute}' LANGUAGE PYTHON")
    found.execute_sql(T)
    return found


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> TableEnvironment:
    return session("streaming")


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> TableEnvironment:
    return session("batch")


def answer(environment: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    """What a query's changes add up to."""
    with environment.execute_sql(query).collect() as rows:
        return folded([(row.kind.short, tuple(row)) for row in rows])


QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    (
        "SELECT k, count_char(s, 'b') + 1, count_char_arrow(s, 'b'), plus(k, 1), seven(), kind_of(n) FROM t"
        " WHERE count_char(s, 'b') > 0 AND k > 0",
        [(1, 2, 1, 2, 7, "int"), (2, 3, 2, 3, 7, "int")],
    ),
    (
        # Calls in calls, in CASE, in what Spark says with a lambda, as a key, as an argument, in HAVING.
        "SELECT plus(plus(k, 1), k) AS p, MAX(CASE WHEN count_char(s, 'a') > 0 THEN INITCAP(kind_of(s))"
        " ELSE 'none' END), SUM(plus(n, 1)) FROM t GROUP BY plus(plus(k, 1), k)"
        " HAVING plus(MAX(k), 0) < 9",
        [(3, "none", 8), (5, "none", 4)],
    ),
    (
        "SELECT k, w, l FROM t, LATERAL TABLE(split_words(s)) AS x(w, l) WHERE l = 1",
        [(1, "a", 1), (1, "b", 1), (2, "c", 1)],
    ),
    (
        "SELECT * FROM t LEFT JOIN LATERAL TABLE(split_words(UPPER(s))) ON TRUE",
        [
            (1, "a b", 2, "A", 1),
            (1, "a b", 2, "B", 1),
            (2, "bb c", 3, "BB", 2),
            (2, "bb c", 3, "C", 1),
            (1, None, 4, None, None),
        ],
    ),
    (
        "SELECT w.word FROM t CROSS JOIN LATERAL TABLE(words(kind_of(s))) AS w",
        [("str",), ("str",), ("NoneType",)],
    ),
    ("SELECT * FROM TABLE(words('a b'))", [("a",), ("b",)]),
    (
        f"SELECT SUM(l) FROM {SUMS} AS g, LATERAL TABLE(split_words(CAST(n AS STRING))) AS x(w, l)",
        [(2,)],
    ),
    ("SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.k AND plus(a.n, b.n) > 6", [(1, 4)]),
    (
        "SELECT a.k, b.n FROM t a LEFT JOIN t b ON plus(a.k, 1) = plus(b.k, 1) AND count_char(b.s, 'a') > 0",
        [(1, 2), (1, 2), (2, None)],
    ),
    ("SELECT k FROM t WHERE n IN (SELECT plus(n, 1) FROM t)", [(2,), (1,)]),
    (
        "SELECT k, wavg(n, 1), wavg(n, 1) FILTER (WHERE n > 2), total(DISTINCT k), total(n), COUNT(*)"
        " FROM t GROUP BY k",
        [(1, 3.0, 4.0, 1, 6, 2), (2, 3.0, 3.0, 2, 3, 1)],
    ),
    (f"SELECT wavg(n, k), total(n), MAX(n) FROM {SUMS}", [(4.0, 9, 6)]),
    ("SELECT total(x) FROM (SELECT total(n) AS x FROM t GROUP BY k)", [(9,)]),
]


@pytest.mark.parametrize("mode", ["stream", "batch"])
@pytest.mark.parametrize(("query", "rows"), QUERIES, ids=range(len(QUERIES)))
def test_answers(mode: str, query: str, rows: list[Any], request: pytest.FixtureRequest) -> None:
    assert answer(request.getfixturevalue(mode), query) == Counter(rows)


def test_a_residual_condition_calls_over_both_sides(
    stream: TableEnvironment, batch: TableEnvironment
) -> None:
    query = "SELECT a.n, b.n FROM t a LEFT JOIN t b ON a.k = b.k AND plus(a.n, b.n) > 6"
    assert answer(stream, query) == Counter([(2, None), (3, None), (4, 4)])
    with pytest.raises(NotSupportedError, match="over both sides of a LeftOuterJoin in batch mode"):
        answer(batch, query)


def test_without_mini_batch_every_row_shows(spark: SparkSession) -> None:
    found = session("streaming", **{"table.exec.mini-batch.enabled": "false"})
    with found.execute_sql("SELECT k, joined(s), total(n) FROM t GROUP BY k").collect() as rows:
        changes = [(row.kind.short, *row) for row in rows]
    assert [c for c in changes if c[1] == 1] == [
        ("+I", 1, "a b", 2),
        ("-U", 1, "a b", 2),
        ("+U", 1, "a b|-", 6),
    ]


def test_nothing_aggregates_to_the_value_of_a_new_accumulator(batch: TableEnvironment) -> None:
    query = "SELECT joined(s), total(n), COUNT(*), LISTAGG(s) FROM t WHERE k > 9"
    assert ask(batch, query) == [("", None, 0, None)]
    assert ask(batch, "SELECT k, joined(s) FROM t WHERE k > 9 GROUP BY k") == []


ERRORS: list[tuple[str, type[Exception], str]] = [
    ("SELECT fails(n) FROM t", ExecutionError, r"The function fails failed: ValueError: no 2\n.*samples\.py"),
    ("SELECT leaves(n) FROM t", ExecutionError, r"The function leaves failed: SystemExit: 2\n.*samples\.py"),
    ("SELECT text_for_number(n) FROM t", ExecutionError, "returned 'seven' of type str; expected BIGINT"),
    ("SELECT too_short(n) FROM t", ExecutionError, "returned 2; expected 3 values"),
    (
        "SELECT plus(k) FROM t",
        ValidationError,
        r"plus\(arg0 => BIGINT, arg1 => BIGINT\) \(at line 1, column 8",
    ),
    ("SELECT plus(k, s) FROM t", ValidationError, "position 1. Data type BIGINT expected but STRING passed"),
    ("SELECT count_char(s) FROM t", ValidationError, "does not take 1 arguments: missing .*'char'"),
    ("SELECT count_chr(s, 'a') FROM t", ValidationError, "Did you mean 'COUNT_CHAR'"),
    ("SELECT words(s) FROM t", ValidationError, "Cannot call table function here: 'words'"),
    ("SELECT * FROM t, LATERAL TABLE(plus(k, 1))", ValidationError, "cannot be used as a table function"),
    ("SELECT * FROM t, LATERAL TABLE(nope(k))", ValidationError, "No match found for function signature"),
    ("SELECT untyped(k) FROM t", ValidationError, "declares 'NO_TYPE', which is not a type"),
    ("SELECT plus(DISTINCT k, 1) FROM t", ValidationError, "DISTINCT/ALL not allowed with PLUS"),
    (f"SELECT largest(n) FROM {SUMS}", ValidationError, "method 'retract' of the aggregate function"),
    ("SELECT total(n) OVER (ORDER BY n) FROM t", NotSupportedError, "aggregate function total with OVER"),
    (
        "SELECT * FROM t RIGHT JOIN LATERAL TABLE(words(s)) ON TRUE",
        NotSupportedError,
        "RightOuterJoin with LATERAL TABLE",
    ),
    (
        "SELECT (SELECT total(b.n) FROM t b WHERE b.k = a.k) FROM t a",
        NotSupportedError,
        "function total in a correlated subquery",
    ),
]


@pytest.mark.parametrize(("query", "kind", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(stream: TableEnvironment, query: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"(?s){message}"):
        ask(stream, query)


def test_modules_that_cannot_be_loaded_are_named_where_they_are_used(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "locked.py").write_text(
        "import threading\nfrom tidemill import udf\nlock = threading.Lock()\n"
        "@udf(result_type='INT')\ndef f():\n    return lock\n"
    )
    found = TableEnvironment.create({"python.files": str(tmp_path)})
    for name, implementation, message in (
        ("a", "no_such_module.f", "No module named 'no_such_module'"),
        ("b", f"{SAMPLES}.none", "has no attribute 'none'."),
        ("c", f"{SAMPLES}.datetime", "is not a user function"),
        ("d", "f", "is not of the form 'module.attribute'"),
        ("h", "broken.f", "Module 'broken' fails: ZeroDivisionError"),
        ("g", "locked.f", "cannot be sent to Spark's Python workers: cannot pickle"),
    ):
        found.execute_sql(f"CREATE TEMPORARY FUNCTION {name} AS '{implementation}' LANGUAGE PYTHON")
        failed = f"Cannot instantiate user-defined function 'default_catalog.default_database.{name}'. "
        with pytest.raises(ValidationError, match=re.escape(failed) + ".*" + re.escape(message)) as raised:
            ask(found, f"SELECT  {name}()")
        assert str(raised.value.position) == "line 1, column 9"


def test_each_session_finds_its_own_module_and_those_beside_it(spark: SparkSession, tmp_path: Path) -> None:
    found = {}
    for word in ("one", "two"):
        folder = tmp_path / word
        folder.mkdir()
        (folder / "beside.py").write_text(f"WORD = '{word}'\n")
        (folder / "own_functions.py").write_text(
            "import beside\ndef say(x: str) -> str:\n    return beside.WORD + x\n"
        )
        found[word] = TableEnvironment.create({"python.files": f"{folder}/own_functions.py"})
        found[word].execute_sql("CREATE TEMPORARY SYSTEM FUNCTION say AS 'own_functions.say' LANGUAGE PYTHON")
        assert ask(found[word], "SELECT say('!')") == [(f"{word}!",)]
    assert ask(found["one"], "SELECT say('?')") == [("one?",)]


def test_a_temporary_system_function_comes_before_a_built_in_and_that_before_others(
    spark: SparkSession,
) -> None:
    found = TableEnvironment.create()
    found.execute_sql(f"CREATE TEMPORARY FUNCTION ascii AS '{SAMPLES}.kind' LANGUAGE PYTHON")
    assert ask(found, "SELECT ascii('a'), default_catalog.default_database.ascii('a')") == [(97, "str")]
    found.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION ascii AS '{SAMPLES}.kind' LANGUAGE PYTHON")
    assert ask(found, "SELECT ASCII('a')") == [("str",)]
    found.execute_sql("DROP TEMPORARY SYSTEM FUNCTION ascii")
    assert ask(found, "SELECT ASCII('a')") == [(97,)]


def test_views_and_inserts_call_them(stream: TableEnvironment, tmp_path: Path) -> None:
    stream.execute_sql("CREATE VIEW calls AS SELECT k, third(n) AS x FROM t WHERE plus(k, 1) = 2")
    stream.execute_sql(
        "CREATE TABLE snk (k INT, x DECIMAL(10, 2))"
        f" WITH ('connector'='filesystem', 'path'='{tmp_path}/out', 'format'='csv')"
    )
    stream.execute_sql("INSERT INTO snk SELECT * FROM calls").wait()
    assert visible.lines(tmp_path / "out") == ["1,0.67", "1,1.33"]


def test_plans_name_them(stream: TableEnvironment) -> None:
    text = stream.explain_sql(
        "SELECT k, count_char(s, 'b') + 1 AS x, plus(k, 1) FROM t WHERE count_char(s, 'b') > 0 AND k > 1"
    )
    nodes = re.findall(r"(\w+)\(select=\[", text.split("== Optimized Physical Plan ==")[1])
    assert nodes[:3] == ["Calc", "PythonCalc", "PythonCalc"]
    assert text.count("count_char(EXPR$1, _UTF-16LE'b') AS f0") == 1
    text = stream.explain_sql("SELECT k, w FROM t, LATERAL TABLE(words(s)) AS x(w)")
    assert "LogicalCorrelate(joinType=[inner], invocation=[words($1)])" in text
    assert "PythonCorrelate(invocation=[words($cor0.s)], correlate=[table(words($cor0.s))]" in text
    text = stream.explain_sql(f"SELECT wavg(n, k) FROM {SUMS}")
    assert "PythonGroupAggregate(select=[wavg_RETRACT(n, k) AS EXPR$0])" in text
