"""Lengths of a sink's columns, and constraints inside of values, as Flink 2.3 enforces them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ExecutionError, ValidationError
from tidemill.session.environment import TableEnvironment

LENGTHS = "table.exec.sink.type-length-enforcer"
NESTED = "table.exec.sink.nested-constraint-enforcer"
NULLS = "table.exec.sink.not-null-enforcer"


@pytest.fixture(params=["streaming", "batch"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> TableEnvironment:
    return new_session(execution__runtime_mode=request.param, table__dml_sync="true")


def _table(session: TableEnvironment, path: Path, kind: str, *values: object, name: str = "t") -> None:
    path.mkdir(exist_ok=True)
    (path / "x.json").write_text("".join(json.dumps({"x": v}) + "\n" for v in values))
    session.execute_sql(
        f"CREATE TABLE {name} (x {kind}) WITH ('connector'='filesystem', 'format'='json', 'path'='{path}')"
    )


def _set(session: TableEnvironment, options: Mapping[str, str]) -> None:
    for key, value in options.items():
        session.execute_sql(f"SET '{key}' = '{value}'")


def _refused(session: TableEnvironment, query: str = "SELECT * FROM t") -> str:
    with pytest.raises(ExecutionError) as caught:
        ask(session, query)
    return caught.value.message


def _too_long(column: str, kind: str, length: int) -> str:
    return (
        f"Column '{column}' is {kind}, however, a string of length {length} is being written into it. You "
        f"can set job configuration '{LENGTHS}' to control this behaviour."
    )


@pytest.mark.parametrize(
    ("kind", "values", "trimmed"),
    [
        ("VARCHAR(3)", ("a", None, "abcdef", "😀😀😀😀"), ["a", None, "abc", "😀😀😀"]),
        ("CHAR(3)", ("a", None, "abcdef", "abc"), ["a  ", None, "abc", "abc"]),
        ("BINARY(3)", ("YQ==", "YWJjZGVm"), [b"a\0\0", b"abc"]),
        ("VARBINARY(3)", ("YQ==", "YWJjZGVm"), [b"a", b"abc"]),
        ("STRING", ("abcdef",), ["abcdef"]),
    ],
)
def test_values_are_cut_and_padded(
    session: TableEnvironment, tmp_path: Path, kind: str, values: tuple[object, ...], trimmed: list[object]
) -> None:
    _table(session, tmp_path / "in", kind, *values)
    _set(session, {LENGTHS: "TRIM_PAD"})
    assert sorted(ask(session, "SELECT * FROM t"), key=repr) == sorted(((x,) for x in trimmed), key=repr)


@pytest.mark.parametrize(
    ("kind", "value", "length"),
    [
        ("VARCHAR(3)", "😀😀😀😀", 4),
        ("CHAR(3)", "a", 1),
        ("CHAR(3)", "abcd", 4),
        ("BINARY(3)", "YQ==", 1),
        ("VARBINARY(3)", "YWJjZGVm", 6),
    ],
)
def test_values_of_another_length_fail(
    session: TableEnvironment, tmp_path: Path, kind: str, value: str, length: int
) -> None:
    _table(session, tmp_path / "in", kind, None, value)
    assert len(ask(session, "SELECT * FROM t")) == 2
    _set(session, {LENGTHS: "ERROR"})
    assert _refused(session) == _too_long("x", kind, length)
    assert _refused(session, "SELECT x AS y FROM t").startswith("Column 'y' is ")


def test_what_has_the_length_and_what_is_cast_passes(session: TableEnvironment, tmp_path: Path) -> None:
    _table(session, tmp_path / "in", "VARCHAR(3)", "a", "😀😀😀", None)
    _set(session, {LENGTHS: "ERROR"})
    assert sorted(ask(session, "SELECT * FROM t"), key=repr) == [("a",), ("😀😀😀",), (None,)]
    assert ask(session, "SELECT CAST('abcdef' AS CHAR(3))") == [("abc",)]


def test_a_sink_gets_what_its_columns_declare(session: TableEnvironment, tmp_path: Path) -> None:
    _table(session, tmp_path / "in", "CHAR(3)", "a", "abcdef")
    files = f"WITH ('connector'='filesystem', 'format'='json', 'path'='{tmp_path / 'out'}')"
    session.execute_sql(f"CREATE TABLE s (y CHAR(3)) {files}")
    _set(session, {LENGTHS: "ERROR"})
    with pytest.raises(ExecutionError, match="Column 'y' is CHAR"):
        session.execute_sql("INSERT INTO s SELECT x FROM t")
    _set(session, {LENGTHS: "TRIM_PAD"})
    session.execute_sql("INSERT INTO s SELECT x FROM t")
    session.execute_sql("RESET")
    session.execute_sql(f"CREATE TABLE r (y STRING) {files}")
    assert sorted(ask(session, "SELECT * FROM r")) == [("a  ",), ("abc",)]


ROW = "ROW<q ROW<c VARCHAR(3)>, a ARRAY<VARCHAR(3)>>"


@pytest.mark.parametrize(
    ("nested", "kind", "value", "message"),
    [
        ("ROWS", ROW, {"q": {"c": "abcd"}, "a": ["abcd"]}, _too_long("x.q.c", "VARCHAR(3)", 4)),
        ("ROWS", ROW, {"q": {"c": "abc"}, "a": ["abcd"]}, None),
        ("ROWS", "MAP<VARCHAR(3), INT>", {"abcd": 1}, None),
        ("ROWS_AND_COLLECTIONS", ROW, {"q": None, "a": ["abcd"]}, _too_long("x.a[0]", "VARCHAR(3)", 4)),
        (
            "ROWS_AND_COLLECTIONS",
            "ARRAY<ARRAY<CHAR(3)>>",
            [[], ["abc", "z"]],
            _too_long("x[1][1]", "CHAR(3)", 1),
        ),
        ("ROWS_AND_COLLECTIONS", "MAP<VARCHAR(3), INT>", {"abcd": 1}, _too_long("x[key]", "VARCHAR(3)", 4)),
        # Flink looks at no element of a MULTISET.
        ("ROWS_AND_COLLECTIONS", "MULTISET<VARCHAR(3)>", {"abcd": 1}, None),
        ("ROWS_AND_COLLECTIONS", "MAP<STRING, CHAR(3)>", {"abcd": "a"}, _too_long("x[value]", "CHAR(3)", 1)),
        (
            "ROWS_AND_COLLECTIONS",
            "ARRAY<ROW<c CHAR(1)>>",
            [None, {"c": "ab"}],
            _too_long("x[1].c", "CHAR(1)", 2),
        ),
    ],
)
def test_lengths_inside_of_values(
    session: TableEnvironment, tmp_path: Path, nested: str, kind: str, value: object, message: str | None
) -> None:
    _table(session, tmp_path / "in", kind, None, value)
    _set(session, {LENGTHS: "ERROR"})
    assert len(ask(session, "SELECT * FROM t")) == 2
    _set(session, {NESTED: nested})
    if message is None:
        assert len(ask(session, "SELECT * FROM t")) == 2
    else:
        assert _refused(session) == message


def test_fields_of_rows_are_cut_and_padded(session: TableEnvironment, tmp_path: Path) -> None:
    _table(session, tmp_path / "in", "ROW<c CHAR(3), n INT>", {"c": "a", "n": 1}, {"c": None, "n": 2}, None)
    _set(session, {LENGTHS: "TRIM_PAD", NESTED: "ROWS"})
    rows = ask(session, "SELECT CAST(x AS STRING) FROM t")
    assert sorted(rows, key=repr) == [("(NULL, 2)",), ("(a, 1)",), (None,)]
    (found,) = [row for (row,) in ask(session, "SELECT x FROM t WHERE x.n = 1")]
    assert tuple(found) == ("a  ", 1)


def test_elements_of_collections_are_not_cut(session: TableEnvironment, tmp_path: Path) -> None:
    _table(session, tmp_path / "in", "INT", 1)
    _set(session, {LENGTHS: "TRIM_PAD", NESTED: "ROWS_AND_COLLECTIONS"})
    with pytest.raises(
        ValidationError, match="not supported if constraint checking is enabled on types nested"
    ):
        ask(session, "SELECT * FROM t")


@pytest.mark.parametrize(
    ("nested", "kind", "good", "bad", "column"),
    [
        ("ROWS", "ROW<c STRING NOT NULL, i INT>", {"c": "a"}, {"i": 1}, "x.c"),
        ("ROWS_AND_COLLECTIONS", "ARRAY<INT NOT NULL>", [1, 2], [1, None], "x[1]"),
        ("ROWS_AND_COLLECTIONS", "MAP<STRING, INT NOT NULL>", {"a": 1}, {"a": None}, "x[value]"),
        ("ROWS_AND_COLLECTIONS", "ARRAY<ROW<d INT NOT NULL>>", [None], [None, {"d": None}], "x[1].d"),
    ],
)
def test_nulls_inside_of_values(
    session: TableEnvironment, tmp_path: Path, nested: str, kind: str, good: object, bad: object, column: str
) -> None:
    _table(session, tmp_path / "in", kind, good, bad, None)
    assert len(ask(session, "SELECT * FROM t")) == 3
    _set(session, {NESTED: nested})
    assert _refused(session).startswith(
        f"Column '{column}' is NOT NULL, however, a null value is being written"
    )
    _set(session, {NULLS: "DROP"})
    left = ask(session, "SELECT * FROM t")
    assert len(left) == 2
    assert (None,) in left


def test_a_dropped_row_is_not_looked_at_further(session: TableEnvironment, tmp_path: Path) -> None:
    _table(
        session,
        tmp_path / "in",
        "ROW<c INT NOT NULL, v VARCHAR(1)>",
        {"c": None, "v": "abc"},
        {"c": 1, "v": "a"},
    )
    _set(session, {NESTED: "ROWS", LENGTHS: "ERROR", NULLS: "DROP"})
    assert len(ask(session, "SELECT * FROM t")) == 1
