"""PyFlink's habits: programs that were written for it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemill import AggregateFunction, EnvironmentSettings, TableEnvironment, udaf, udf, udtf
from tidemill.errors import ValidationError


@pytest.fixture
def env(spark: SparkSession) -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def answer(env: TableEnvironment, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in env.execute_sql(query).collect())


def test_settings_choose_the_mode() -> None:
    builder = EnvironmentSettings.new_instance().in_batch_mode()
    settings = builder.with_configuration({"parallelism.default": "1"}).build()
    config = TableEnvironment.create(settings).get_config()
    assert (config.get("execution.runtime-mode", ""), config.get("parallelism.default", "")) == ("BATCH", "1")
    streaming = TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).get_config()
    assert streaming.get("execution.runtime-mode", "") == "STREAMING"


def test_elements_get_the_types_of_python(env: TableEnvironment) -> None:
    row = (1, 2.5, "a", None, Decimal("1.20"), dt.date(2024, 2, 29), dt.time(1, 2, 3), True, [1, 2])
    table = env.from_elements([row, (2, None, "b", b"x", None, None, None, False, [])])
    assert [str(f.type) for f in table.fields] == [
        "BIGINT",
        "DOUBLE",
        "STRING",
        "BYTES",
        "DECIMAL(3, 2)",
        "DATE",
        "TIME(3)",
        "BOOLEAN",
        "ARRAY<BIGINT>",
    ]
    assert sorted(tuple(r) for r in table.execute().collect())[0] == row
    assert env.list_tables() == []


def test_a_schema_names_or_types_the_elements(env: TableEnvironment) -> None:
    assert [f.name for f in env.from_elements([(1, "a")], ["id", "name"]).fields] == ["id", "name"]
    table = env.from_elements(
        [(1, {"a": 1}, dt.time(0, 0, 1), dt.datetime(2024, 1, 1, 12))],
        "ROW<id INT, m MAP<STRING, INT>, t TIME(3), ts TIMESTAMP(3)>",
    )
    assert [str(f.type) for f in table.fields] == ["INT", "MAP<STRING, INT>", "TIME(3)", "TIMESTAMP(3)"]
    ((*values,),) = table.execute().collect()
    assert values == [1, {"a": 1}, dt.time(0, 0, 1), dt.datetime(2024, 1, 1, 12)]
    env.create_temporary_view("typed", table)
    assert answer(env, "SELECT id + 1, m['a'] FROM typed") == [(2, 1)]


def test_plain_values_are_one_column(env: TableEnvironment) -> None:
    env.create_temporary_view("numbers", env.from_elements([3, 4]))
    assert answer(env, "SELECT SUM(_1) FROM numbers") == [(7,)]


@pytest.mark.parametrize(
    ("elements", "schema", "message"),
    [
        ([], None, "needs an element, or a schema"),
        (5, None, "takes a list of elements, not 5"),
        ("abc", None, "takes a list of elements, not 'abc'"),
        ([(1,)], 5, "or ROW<name TYPE, ...>, not 5"),
        ([(1,)], [5], r"or ROW<name TYPE, ...>, not \[5\]"),
        ([(1, None)], None, "Column '_2': no value tells its type"),
        ([(1,), (None,)], "ROW<x INT NOT NULL>", "Column 'x', row 2: NULL does not fit INT NOT NULL"),
        ([("ab",), ("abcd",)], "ROW<x VARCHAR(3)>", "row 2: a text of length 4 does not fit"),
        ([(b"abcd",)], "ROW<x VARBINARY(3)>", "row 1: a value of length 4 does not fit"),
        ([(1,), (300,)], "ROW<x TINYINT>", "Column 'x', row 2: 300 does not fit TINYINT"),
        ([((1, None),)], "ROW<r ROW<a INT, b INT NOT NULL>>", "Column 'r', row 1: NULL does not fit"),
        ([([1, None],)], "ROW<a ARRAY<INT NOT NULL>>", "Column 'a', row 1: NULL does not fit"),
        ([({"a": None},)], "ROW<m MAP<STRING, INT NOT NULL>>", "Column 'm', row 1: NULL does not fit"),
        ([(1,), (1, 2)], None, "not all of one length"),
        ([(1, 2)], ["a"], "The schema has 1 columns, the data has 2"),
        ([(1, "x"), ("y", 2)], None, "Column '_1', row 2: 'y' does not fit BIGINT"),
        ([(1, 2)], ["a", "a"], "not unique"),
        ([(1,)], "INT", "not 'INT'"),
        ([{"a": 1}, (1,)], None, "some elements are dicts"),
        ([{"a": 1, "b": 2}], ["a"], "the schema has no column 'b'"),
        ([{"a": 1, 2: 3}], None, "Column names must be texts"),
        ([("x",)], "ROW<a INT>", "Column 'a', row 1: 'x' does not fit INT"),
    ],
)
def test_elements_that_are_no_table(
    env: TableEnvironment, elements: list[object], schema: str | list[str] | None, message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        env.from_elements(elements, schema)


def test_nested_elements_get_the_types_of_python(env: TableEnvironment) -> None:
    span = dt.timedelta(seconds=1.5)
    table = env.from_elements([({"a": 1}, (1, "x"), [{"b": None}, {"c": 2}], span), (None, None, None, None)])
    assert [str(f.type) for f in table.fields] == [
        "MAP<STRING, BIGINT>",
        "ROW<`_1` BIGINT, `_2` STRING>",
        "ARRAY<MAP<STRING, BIGINT>>",
        "INTERVAL SECOND(3)",
    ]
    first, second = (tuple(row) for row in table.execute().collect())
    assert first == ({"a": 1}, (1, "x"), [{"b": None}, {"c": 2}], span)
    assert second == (None, None, None, None)


def test_dicts_are_rows_by_their_keys(env: TableEnvironment) -> None:
    table = env.from_elements([{"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"a": 3}])
    assert [f.name for f in table.fields] == ["a", "b"]
    assert sorted(tuple(row) for row in table.execute().collect()) == [(1, "x"), (2, "y"), (3, None)]
    typed = env.from_elements([{"b": "x", "a": 1}], "ROW<a INT, b STRING>")
    assert [tuple(row) for row in typed.execute().collect()] == [(1, "x")]


def test_a_schema_is_kept(env: TableEnvironment) -> None:
    now = dt.datetime(2024, 1, 1, 0, 0, 0, 123456)
    table = env.from_elements(
        [(Decimal("1.005"), now, (1, now), {"a": 2}, None)],
        "ROW<d DECIMAL(5, 2), t TIMESTAMP(3), r ROW<a INT NOT NULL, t TIMESTAMP(0)>, m MULTISET<STRING>,"
        " n ROW<a INT NOT NULL>>",
    )
    short = now.replace(microsecond=123000)
    (row,) = table.execute().collect()
    assert tuple(row) == (Decimal("1.01"), short, (1, now.replace(microsecond=0)), {"a": 2}, None)


def test_a_schema_is_enough(env: TableEnvironment) -> None:
    table = env.from_elements(
        [], "ROW<t TIMESTAMP(3), m MAP<STRING, INT>, r ROW<a DECIMAL(3, 1)>, v VARCHAR(3)>"
    )
    assert [f.name for f in table.fields] == ["t", "m", "r", "v"]
    assert list(table.execute().collect()) == []


def test_a_frame_gets_the_types_of_its_schema(env: TableEnvironment) -> None:
    frame = pd.DataFrame(
        {
            "d": [1, 20],
            "n": [1.0, None],
            "m": [{"a": 1}, None],
            "r": [{"x": 1, "y": "b"}, None],
            "s": pd.to_timedelta(["1s", None]),
        }
    )
    assert [str(f.type) for f in env.from_pandas(frame[["m", "s"]]).fields] == [
        "MAP<STRING, BIGINT>",
        "INTERVAL SECOND(3)",
    ]
    schema = "ROW<d DECIMAL(5, 2), n INT, m MAP<STRING, INT>, r ROW<x INT, y STRING>, s INTERVAL SECOND(3)>"
    first, second = (tuple(row) for row in env.from_pandas(frame, schema).execute().collect())
    assert first == (Decimal("1.00"), 1, {"a": 1}, (1, "b"), dt.timedelta(seconds=1))
    assert second == (Decimal("20.00"), None, None, None, None)
    with pytest.raises(ValidationError, match="Column 'd', row 2: 20 does not fit"):
        env.from_pandas(frame[["d"]], "ROW<d DECIMAL(3, 2)>")


def test_pandas_comes_in_and_goes_out(env: TableEnvironment) -> None:
    frame = pd.DataFrame(
        {"k": ["a", "b", "a"], "seen": pd.to_datetime(["2024-01-01", "2024-01-02", None]), "n": [1, 2, 3]}
    )
    table = env.from_pandas(frame)
    assert [str(f.type) for f in table.fields] == ["STRING", "TIMESTAMP(6)", "BIGINT"]
    env.create_temporary_view("frame", frame)
    assert answer(env, "SELECT k, SUM(n), MAX(seen) FROM frame GROUP BY k") == [
        ("a", 4, dt.datetime(2024, 1, 1)),
        ("b", 2, dt.datetime(2024, 1, 2)),
    ]
    assert [f.name for f in env.from_pandas(frame, frame.columns).fields] == ["k", "seen", "n"]
    assert list(env.from_pandas(frame, ["x", "y", "z"]).to_pandas()["z"]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda env: env.create(5), "The configuration must be a dict of option texts, not 5"),
        (
            lambda env: env.create({"parallelism.default": 1}),
            "'parallelism.default' must be a text",
        ),
        (lambda env: env.create({1: "1"}), "The key of an option must be a text, not 1"),
        (lambda env: env.get_config().set("parallelism.default", 1), "must be a text, not 1"),
        (lambda env: env.execute_sql(None), "The statement of execute_sql\\(\\) must be a text, not None"),
        (lambda env: list(env.execute_script(None)), "must be a text, not None"),
        (lambda env: env.sql_query(None), "The query of sql_query\\(\\) must be a text, not None"),
        (lambda env: env.explain_sql(None), "must be a text, not None"),
        (lambda env: env.explain_sql("SELECT 1", None), "A detail of explain\\(\\) must be a text"),
        (lambda env: env.sql_query("SELECT 1").explain(None), "A detail of explain\\(\\) must be a text"),
        (lambda env: env.from_path(None), "must be a text, not None"),
        (lambda env: env.from_pandas([1, 2]), "takes a pandas DataFrame, not \\[1, 2\\]"),
        (lambda env: env.create_temporary_view("v", [1]), "a Spark or a pandas DataFrame, not \\[1\\]"),
        (lambda env: env.create_temporary_view("v", F.lit(1)), "pandas DataFrame, not Column<"),
        (lambda env: env.create_temporary_view(None, [1]), "A name must be a text, not None"),
        (lambda env: env.use_database(None), "A name must be a text, not None"),
        (lambda env: env.create_statement_set().add_insert("b", 5), "must be a Table, not 5"),
        (lambda env: env.create_statement_set().add_insert_sql(None), "must be a text, not None"),
        (lambda env: env.sql_query("SELECT 1").execute_insert(None), "The path of a sink must be a text"),
    ],
)
def test_wrong_arguments_are_named(env: TableEnvironment, call: Callable[[Any], object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        call(env)


def test_a_table_of_another_environment_is_refused(env: TableEnvironment) -> None:
    other = TableEnvironment.create()
    for made, n in ((env, 1), (other, 2)):
        made.create_temporary_view("t", made.from_elements([(n,)], ["n"]))
    table = env.from_path("t")
    with pytest.raises(ValidationError, match="A Table belongs to its TableEnvironment"):
        other.create_temporary_view("copied", table)
    with pytest.raises(ValidationError, match="A Table belongs to its TableEnvironment"):
        other.create_statement_set().add_insert("t", table)
    env.create_temporary_view("copied", table)
    assert answer(env, "SELECT n FROM copied") == [(1,)]


def test_categories_are_their_values(env: TableEnvironment) -> None:
    frame = pd.DataFrame({"k": pd.Categorical(["a", "b", None, "a"]), "n": [1.5, float("nan"), 2.0, 3.0]})
    table = env.from_pandas(frame)
    assert [str(f.type) for f in table.fields] == ["STRING", "DOUBLE"]
    env.create_temporary_view("categories", table)
    assert answer(env, "SELECT k, n FROM categories WHERE k <> 'b'") == [("a", 1.5), ("a", 3.0)]
    assert answer(env, "SELECT COUNT(*) FROM categories WHERE n IS NULL") == [(1,)]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"x": [2**70]}), "too large"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "Duplicate column names"),
        (pd.DataFrame({"x": [object()]}), "cannot be a table"),
    ],
)
def test_frames_that_are_no_tables(env: TableEnvironment, frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        env.from_pandas(frame)


def test_functions_of_the_program(env: TableEnvironment) -> None:
    @udf(result_type="BIGINT")
    def doubled(n: int) -> int:
        return 2 * n

    def shout(text: str) -> str:
        return text.upper()

    @udtf(result_types=["STRING"])
    def letters(text: str) -> list[str]:
        return list(text)

    class Longest(AggregateFunction):
        def create_accumulator(self) -> list[str]:
            return [""]

        def accumulate(self, accumulator: list[str], text: str) -> None:
            accumulator[0] = max(accumulator[0], text, key=len)

        def get_value(self, accumulator: list[str]) -> str:
            return accumulator[0]

    env.create_temporary_function("doubled", doubled)
    env.create_temporary_system_function("shout", shout)
    env.create_temporary_function("letters", letters)
    env.create_temporary_function(
        "longest", udaf(Longest(), result_type="STRING", accumulator_type="ROW<s STRING>")
    )
    env.create_temporary_view("words", env.from_elements([(1, "ab"), (2, "cde")], ["n", "w"]))
    assert answer(env, "SELECT doubled(n), shout(w) FROM words") == [(2, "AB"), (4, "CDE")]
    assert answer(env, "SELECT l FROM words, LATERAL TABLE(letters(w)) AS x(l) WHERE n = 1") == [
        ("a",),
        ("b",),
    ]
    assert answer(env, "SELECT longest(w) FROM words") == [("cde",)]
    assert (env.drop_temporary_function("doubled"), env.drop_temporary_function("doubled")) == (True, False)
    with pytest.raises(ValidationError):
        env.execute_sql("SELECT doubled(n) FROM words")


def test_what_is_no_function_is_refused(env: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match=r"Cannot register the function 'f'.*is not a user function"):
        env.create_temporary_function("f", lambda n: n)


def test_a_table_is_inserted_and_its_job_followed(spark: SparkSession, tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name in ("first_sink", "second_sink"):
        env.execute_sql(
            f"CREATE TABLE {name} (k STRING, n BIGINT)"
            f" WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = 'csv')"
        )
    table = env.from_elements([("a", 1), ("b", 2)], ["k", "n"])
    client = table.execute_insert("first_sink").get_job_client()
    assert client is not None
    assert client.get_job_execution_result().result().get_job_id() == client.get_job_id()
    assert client.get_job_status().result() == "FINISHED"
    with pytest.raises(ValidationError, match="does not run: it is FINISHED"):
        client.stop_with_savepoint(False, "/nowhere")
    both = env.create_statement_set().add_insert("first_sink", table).add_insert("second_sink", table)
    both.execute().wait()
    assert answer(env, "SELECT k, n FROM first_sink") == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]
    assert answer(env, "SELECT k, n FROM second_sink") == [("a", 1), ("b", 2)]


def test_a_failing_job_fails_its_future(spark: SparkSession) -> None:
    env = TableEnvironment.create()
    env.execute_sql("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')")
    table = env.sql_query("SELECT CAST(w AS INT) FROM (VALUES ('x')) AS t(w)")
    client = table.execute_insert("sink").get_job_client()
    assert client is not None
    assert "x" in str(client.get_job_execution_result().exception())
    assert client.get_job_status().result() == "FAILED"


def test_arrow_types_without_a_word_are_refused(env: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match="has no counterpart"):
        env.from_pandas(pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(pa.array([1], pa.uint64()))}))


def test_an_option_of_spark_that_comes_too_late_is_told(env: TableEnvironment, spark: SparkSession) -> None:
    running = str(spark.sparkContext.master)
    env.get_config().set("spark.master", running)
    assert env.context.warnings == []
    env.execute_sql("SET 'tidemill.spark.executor.memory' = '3g'")
    assert env.context.warnings == [
        "Spark runs already: 'spark.executor.memory' = '3g' has no effect until the program starts again."
    ]
