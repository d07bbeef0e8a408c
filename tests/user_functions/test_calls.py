"""Bound calls: values there and back in every type, and what a function may not give."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.user_functions import samples
from tidemill.errors import ExecutionError
from tidemill.sql.parser import parse_type
from tidemill.types.logical import Field, LogicalType, RowType
from tidemill.types.physical import arrow_type
from tidemill.user_functions.calls import BoundScalar, BoundTable
from tidemill.user_functions.kinds import UserFunction
from tidemill.user_functions.values import from_python, presented, to_python


def types(*texts: str) -> tuple[LogicalType, ...]:
    return tuple(map(parse_type, texts))


def scalar(body: Any, result: str, *args: str, vectorized: bool = False) -> BoundScalar:
    called = body.body if isinstance(body, UserFunction) else body
    return BoundScalar(
        name="f",
        body=called,
        vectorized=vectorized,
        deterministic=True,
        arg_types=types(*args),
        result=parse_type(result),
    )


def table(body: Any, columns: tuple[str, ...], *args: str, vectorized: bool = False) -> BoundTable:
    fields = tuple(Field(f"f{i}", kind) for i, kind in enumerate(types(*columns)))
    return BoundTable(
        name="f",
        body=body.body,
        vectorized=vectorized,
        deterministic=True,
        arg_types=types(*args),
        columns=RowType(fields=fields),
    )


UTC = dt.UTC
VALUES: list[tuple[str, list[Any]]] = [
    ("BOOLEAN", [True, False]),
    ("TINYINT", [-128, 127]),
    ("BIGINT", [-(2**63), 2**63 - 1]),
    ("FLOAT", [0.5, -1.0]),
    ("DECIMAL(38, 18)", [Decimal("1.000000000000000001")]),
    ("STRING", ["", "é\U0001f600"]),
    ("BYTES", [b"", b"\x00\xff"]),
    ("DATE", [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("TIME(3)", [dt.time(0), dt.time(23, 59, 59, 999000)]),
    ("TIMESTAMP(6)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    ("TIMESTAMP_LTZ(3)", [dt.datetime(2020, 1, 1, 12, tzinfo=UTC)]),
    ("INTERVAL DAY TO SECOND(3)", [dt.timedelta(days=-1), dt.timedelta(milliseconds=5)]),
    ("INTERVAL YEAR TO MONTH", [14]),
    ("ARRAY<TIME(3)>", [[], [dt.time(1), None]]),
    ("MAP<STRING, ARRAY<INT>>", [{}, {"a": [1, None], "b": None}]),
    ("MULTISET<STRING>", [{"a": 2}]),
    ("ROW<a INT, m MAP<STRING, TIME(3)>>", [{"a": 1, "m": {"x": dt.time(2)}}, {"a": None, "m": None}]),
]


@pytest.mark.parametrize(("text", "values"), VALUES, ids=[t for t, _ in VALUES])
def test_values_come_back_as_they_went(text: str, values: list[Any]) -> None:
    kind = parse_type(text)
    given = [None, *values, None, *values]
    array = from_python(given, kind)
    assert array.type == arrow_type(kind)
    assert to_python(array, kind) == given
    assert to_python(array.slice(2), kind) == given[2:]
    same = scalar(lambda x: x, text, text)
    assert same((array.slice(1),), len(array) - 1).equals(array.slice(1))
    arrays = scalar(lambda x: x, text, text, vectorized=True)
    assert arrays((array.slice(1),), len(array) - 1).equals(array.slice(1))


def test_arrow_functions_see_natural_types() -> None:
    kind = parse_type("ROW<t TIME(3), m MAP<STRING, INT>>")
    shown = presented(from_python([{"t": dt.time(1), "m": {"a": 1}}], kind), kind)
    assert shown.type == pa.struct([("t", pa.time32("ms")), ("m", pa.map_(pa.string(), pa.int32()))])


def test_decimals_are_rounded_half_up_and_rows_taken_by_position() -> None:
    rounded = scalar(lambda: Decimal("1.005"), "DECIMAL(5, 2)")
    assert rounded((), 2).to_pylist() == [Decimal("1.01")] * 2
    row = scalar(lambda: [1, "x"], "ROW<a INT, b STRING>")
    assert row((), 1).to_pylist() == [{"a": 1, "b": "x"}]


def test_digits_beyond_the_precision_go_in_nested_values_too() -> None:
    late = dt.datetime(2024, 1, 1, 0, 0, 0, 123456)
    made = scalar(lambda: [{"t": late}, None, {"t": None}], "ARRAY<ROW<t TIMESTAMP(3)>>")
    assert made((), 1).to_pylist() == [[{"t": late.replace(microsecond=123000)}, None, {"t": None}]]


def test_arrays_of_the_same_family_fit() -> None:
    narrow = scalar(lambda x: x.cast(pa.int32()), "BIGINT", "BIGINT", vectorized=True)
    assert narrow((pa.array([1, None]),), 2).equals(pa.array([1, None], pa.int64()))
    texts = pa.chunked_array([pa.array(["a"]).dictionary_encode()])
    assert scalar(lambda: texts, "STRING", vectorized=True)((), 1).equals(pa.array(["a"]))


WRONG: list[tuple[BoundScalar, str]] = [
    (scalar(samples.fails, "BIGINT", "BIGINT"), r"f failed: ValueError: no 1\n.*samples\.py.*in fails"),
    (scalar(samples.leaves, "BIGINT", "BIGINT"), r"f failed: SystemExit: 1\n.*samples\.py.*in leaves"),
    (scalar(samples.stops, "BIGINT", "BIGINT"), r"f failed: StopIteration"),
    (scalar(lambda x: "seven", "BIGINT", "BIGINT"), r"f returned 'seven' of type str; expected BIGINT"),
    (scalar(lambda x: 2**40, "INT", "BIGINT"), r"f returned 1099511627776 of type int; expected INT"),
    (scalar(lambda x: None, "INT NOT NULL", "BIGINT"), r"f returned NULL; expected INT NOT NULL"),
    (
        scalar(lambda x: [{"a": None}], "ARRAY<ROW<a INT NOT NULL>>", "BIGINT"),
        r"f returned NULL; expected ARRAY<ROW<`a` INT NOT NULL>>",
    ),
    (scalar(lambda x: (1,), "ROW<a INT, b INT>", "BIGINT"), r"f returned \(1,\) of type tuple; expected ROW"),
    (scalar(lambda x: {"A": 1}, "ROW<a INT>", "BIGINT"), r"f returned \{'A': 1\} of type dict; expected ROW"),
    (
        scalar(lambda x: x[:1], "BIGINT", "BIGINT", vectorized=True),
        "returned 1; expected 2 values, one per row",
    ),
    (
        scalar(lambda x: x.cast(pa.string()), "BIGINT", "BIGINT", vectorized=True),
        r"returned an array of string; expected BIGINT \(int64\)",
    ),
    (
        scalar(lambda x: pa.array([2**40, 0]), "INT", "BIGINT", vectorized=True),
        r"returned an array of int64: .*; expected INT \(int32\)",
    ),
    (
        scalar(lambda x: [1, 2], "BIGINT", "BIGINT", vectorized=True),
        "returned a value of type list; expected a pyarrow array",
    ),
]


@pytest.mark.parametrize(("function", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_results_are_named(function: BoundScalar, message: str) -> None:
    with pytest.raises(ExecutionError, match=f"(?s)The function (f )?{message}"):
        function((pa.array([1, 2]),), 2)


NOW = dt.datetime(2020, 1, 1, 10)
OTHER_KINDS: list[tuple[str, list[Any]]] = [
    ("TINYINT", [1.0, 1.5, True, "1", Decimal(1), np.bool_(True)]),
    ("BIGINT", [1.0, False, "1", np.float32(1), NOW]),
    ("DOUBLE", [True, "1.5"]),
    ("DECIMAL(10, 2)", [1.5, True, "1"]),
    ("BOOLEAN", [1, 0.0, "true"]),
    ("STRING", [1, 1.5, True, b"a", NOW]),
    ("BYTES", ["a", 1]),
    ("DATE", [1, 1.5, "2020-01-01", np.int64(1)]),
    ("TIME(3)", [1, 1.5, "10:00:00", NOW]),
    ("TIMESTAMP(3)", [1, 1.5, True, "2020-01-01 10:00:00", NOW.date(), Decimal(1)]),
    ("TIMESTAMP_LTZ(3)", [1, 1.5, "2020-01-01 10:00:00", NOW.date()]),
    ("INTERVAL DAY TO SECOND(3)", [1, 1.5, "1"]),
    ("INTERVAL YEAR TO MONTH", [1.0, True]),
    ("ARRAY<TIMESTAMP(3)>", [[NOW, 1]]),
    ("MAP<STRING, DATE>", [{"a": 1}, {b"a": NOW.date()}]),
    ("MULTISET<DATE>", [{1: 1}, {NOW.date(): 1.5}]),
    ("ROW<a INT, b ROW<c TIME(3)>>", [(1, (5,)), {"a": 1.5}]),
]


@pytest.mark.parametrize(("text", "values"), OTHER_KINDS, ids=[t for t, _ in OTHER_KINDS])
def test_values_of_another_kind_are_not_read_as_the_declared_type(text: str, values: list[Any]) -> None:
    for value in values:
        gives = scalar(lambda v=value: v, text)
        shown = (
            f"f returned {value!r} of type {type(value).__name__}; expected {text.split()[0].split('<')[0]}"
        )
        with pytest.raises(ExecutionError, match=re.escape(shown)):
            gives((), 2)


def test_values_that_mean_the_same_are_taken() -> None:
    taken: list[tuple[str, Any, Any]] = [
        ("DOUBLE", 1, 1.0),
        ("FLOAT", np.int16(2), 2.0),
        ("DECIMAL(10, 2)", 3, Decimal("3.00")),
        ("INT", np.uint8(4), 4),
        ("BOOLEAN", np.bool_(True), True),
        ("BYTES", bytearray(b"a"), b"a"),
        ("BIGINT", pa.scalar(5), 5),
        ("ARRAY<DOUBLE>", np.array([1, 2]), [1.0, 2.0]),
    ]
    for text, given, expected in taken:
        assert scalar(lambda v=given: v, text)((), 1).to_pylist() == [expected]


def test_digits_beyond_a_timestamps_precision_are_cut() -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    for text, micros in (("TIMESTAMP(3)", 999000), ("TIMESTAMP(0)", 0), ("TIMESTAMP(6)", 999999)):
        expected = [moment.replace(microsecond=micros)]
        assert scalar(lambda: moment, text)((), 1).to_pylist() == expected
        array = scalar(lambda: pa.array([moment]), text, vectorized=True)
        assert array((), 1).to_pylist() == expected


def test_table_functions_give_a_list_of_rows_per_row() -> None:
    texts = pa.array(["a bc", None, "d"])
    expected = [[{"f0": "a", "f1": 1}, {"f0": "bc", "f1": 2}], [], [{"f0": "d", "f1": 1}]]
    assert table(samples.split_words, ("STRING", "INT"), "STRING")((texts,), 3).to_pylist() == expected
    words = table(samples.words, ("STRING",), "STRING", vectorized=True)
    assert words((texts,), 3).to_pylist() == [[{"f0": "a"}, {"f0": "bc"}], [], [{"f0": "d"}]]
    numbers = pa.array([1, None, 3], pa.int32())
    pairs = table(samples.pairs, ("INT", "BIGINT"), "INT", vectorized=True)
    assert pairs((numbers,), 3).to_pylist() == [[{"f0": 1, "f1": 2}], [], [{"f0": 3, "f1": 6}]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(1,)], r"f returned \(1,\); expected rows of 2 columns"),
        ("text", "f returned 'text'; expected rows to iterate over"),
        ([(1, "x")], "f returned 'x' of type str; expected INT"),
    ],
)
def test_wrong_rows_are_named(given: Any, message: str) -> None:
    wrong = scalar(lambda: given, "INT")
    function = table(wrong, ("INT", "INT"))
    with pytest.raises(ExecutionError, match=message):
        function((), 1)
