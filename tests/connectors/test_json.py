"""JSON as Flink 2.3 reads and writes it; the expected values are what the real engine gave."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.formats import decode, encode
from tidemill.connectors.formats.api import RecordError
from tidemill.errors import ConnectorError
from tidemill.types import logical as t

PAIR = {"a": t.INT, "b": t.STRING}
LENIENT = {"json.ignore-parse-errors": "true"}
ISO = {**LENIENT, "json.timestamp-format.standard": "ISO-8601"}
MILLIS = t.TimestampType(precision=3)


def one(kind: t.LogicalType, values: list[str], options: dict[str, str]) -> list[Any]:
    text = "".join(f'{{"a":{v}}}\n' for v in values)
    return [row[0] for row in decode("json", {"a": kind}, text, options)]


@pytest.mark.parametrize(
    ("kind", "values", "options", "expected"),
    [
        (
            t.INT,
            ["1", '"2"', '" 3 "', "1.9", '"1.9"', "2147483648", "true", "null", '""', "[1]", "1e2", "-1.9"],
            LENIENT,
            [1, 2, 3, 1, None, None, None, None, None, None, 100, -1],
        ),
        (t.TinyIntType(), ["127", "128", "1.5", '"5"'], LENIENT, [127, None, None, 5]),
        (t.BIGINT, ["9223372036854775808", "1.5e3"], LENIENT, [None, 1500]),
        (t.DOUBLE, ["1", '"2.5"', "true", "1e400", '"x"'], LENIENT, [1, 2.5, None, float("inf"), None]),
        (t.BOOLEAN, ["true", '"true"', '"yes"', "1", '" TRUE "'], LENIENT, [True, True, False, False, True]),
        (
            t.STRING,
            ['"x"', "1.50", "true", "[1, 2]", '{"b": 1.0, "c":"é", "d":1e20, "e":0.00001}', "1e3"],
            {},
            ["x", "1.50", "true", "[1,2]", '{"b":1.0,"c":"é","d":1.0E20,"e":1.0E-5}', "1e3"],
        ),
        (
            t.DecimalType(precision=5, scale=2),
            ["1.005", '"1.005"', "123456", '"x"', "1e2", '" 1 "'],
            LENIENT,
            [Decimal("1.01"), Decimal("1.01"), None, None, Decimal("100.00"), Decimal("1.00")],
        ),
        (
            t.DATE,
            ['"2020-01-01"', '"2020-1-2"', "18000", '"2020-02-30"'],
            LENIENT,
            [date(2020, 1, 1)] + [None] * 3,
        ),
        (t.TimeType(precision=3), ['"12:34:56.789"', '"12:34"'], LENIENT, [45296789, None]),
        (
            MILLIS,
            [
                '"2020-01-01 00:00:00.123456"',
                '"2020-01-01T00:00:00"',
                "1577836800000",
                '" 2020-01-01 00:00:00"',
            ],
            LENIENT,
            [datetime(2020, 1, 1, 0, 0, 0, 123000), None, None, None],
        ),
        (
            MILLIS,
            ['"2020-01-01 00:00:00"', '"2020-01-01T00:00:00.123"', '"2020-01-01T00:00"'],
            ISO,
            [None, datetime(2020, 1, 1, 0, 0, 0, 123000), datetime(2020, 1, 1)],
        ),
        (
            t.LocalZonedTimestampType(precision=3),
            ['"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00"', '"2020-01-01T00:00:00+01:00"'],
            ISO,
            [datetime(2020, 1, 1, tzinfo=UTC), None, None],
        ),
        (t.BYTES, ['"aGk="', '"hi"', "1"], LENIENT, [b"hi", None, None]),
        (t.ArrayType(element=t.INT), ["[1,2]", '[1,"x"]', "5", "[]"], LENIENT, [[1, 2], [1, None], None, []]),
        (
            t.MapType(key=t.STRING, value=t.INT),
            ['{"k":1,"l":null}', '{"k":"x"}', "[]"],
            LENIENT,
            [[{"key": "k", "value": 1}, {"key": "l", "value": None}], [{"key": "k", "value": None}], None],
        ),
        (
            t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.ArrayType(element=MILLIS)))),
            ['{"x":"1","y":["2020-01-01 00:00:00"]}', '{"x":"q"}', "{}", "[1]", "null"],
            LENIENT,
            [
                {"x": 1, "y": [datetime(2020, 1, 1)]},
                {"x": None, "y": None},
                {"x": None, "y": None},
                None,
                None,
            ],
        ),
    ],
)
def test_values(kind: t.LogicalType, values: list[str], options: dict[str, str], expected: list[Any]) -> None:
    assert one(kind, values, options) == expected


@pytest.mark.parametrize(
    "kind", [t.INT, t.DOUBLE, t.DecimalType(precision=5, scale=2), MILLIS, t.DATE, t.BOOLEAN, t.STRING]
)
def test_every_way_of_reading_agrees(kind: t.LogicalType) -> None:
    """Plain values read column by column; the same values beside an odd one go object by object."""
    texts = {
        t.INT: ["1", "-7", "null"],
        t.DOUBLE: ["1.5", "1e3", "null"],
        MILLIS: ['"2020-01-01 00:00:00"', '"1969-12-31 23:59:59.987"'],
        t.DATE: ['"2020-01-01"'],
        t.BOOLEAN: ["true", "false"],
        t.STRING: ['"x"', '"\\u00e9\\n"', '""'],
    }.get(kind, ["1.25", "3"])
    alone = one(kind, texts, {})
    assert one(kind, [*texts, "[]"], LENIENT)[: len(texts)] == alone
    quoted = [x if x.startswith('"') or x == "null" else f'"{x}"' for x in texts]
    assert one(kind, quoted, {}) == alone


def test_lines_that_are_no_objects_are_skipped_or_errors() -> None:
    text = (
        '{"a":1}\n{"b":"x","a":2,"zz":[1]}\n\n   \n{}\n[]\nnot json\n{"a":\n5\n"x"\nnull\n{"A":3,"b":"y"}\n'
    )
    text += '{"a":7,"a":8}\n{"a":9} trailing\n'
    expected = [(1, None), (2, "x"), (None, None), (None, "y"), (8, None), (9, None)]
    assert decode("json", PAIR, text, LENIENT) == expected
    for line, odd in enumerate(["5", "null", '{"a":', "   ", "not json"]):
        with pytest.raises(RecordError, match="Failed to deserialize JSON") as caught:
            decode("json", PAIR, '{"a":1}\n' * line + odd + "\n")
        assert caught.value.line == line


def test_arrays_of_objects_and_carriage_returns() -> None:
    assert decode("json", PAIR, '[{"a":1},{"a":2}]\r\n{"a":3} {"a":4}\r\n') == [
        (1, None),
        (2, None),
        (3, None),
    ]
    assert decode("json", PAIR, b'\xef\xbb\xbf{"a":1}') == [(1, None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":1}\n{"a":"ten"}\n', 'Fail to deserialize at field: a. Value: "ten"'),
        ('{"a":1}\n{"a":1,"b":NaN}\n', "NaN"),
        ('{"a":1}\n{"a":""}\n', "Fail to deserialize at field: a"),
    ],
)
def test_errors_name_field_value_and_line(text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode("json", PAIR, text)
    assert message in str(caught.value)
    assert caught.value.line == 1


def test_invalid_utf8_is_an_error() -> None:
    with pytest.raises(RecordError):
        decode("json", PAIR, b'{"b":"\xff"}\n')


def test_missing_fields_can_fail() -> None:
    with pytest.raises(RecordError, match="Some field is missing"):
        decode("json", PAIR, '{"a":1}\n', {"json.fail-on-missing-field": "true"})


WIDE = {
    "d": t.DecimalType(precision=20, scale=3),
    "f": t.FloatType(),
    "s": t.STRING,
    "tz": t.LocalZonedTimestampType(precision=3),
    "by": t.BYTES,
    "ai": t.ArrayType(element=t.INT),
    "m": t.MapType(key=t.STRING, value=t.INT),
    "r": t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.STRING))),
}


def wide() -> pa.Table:
    return pa.table(
        {
            "d": pa.array([Decimal("100000.000"), None], pa.decimal128(20, 3)),
            "f": pa.array([1e-5, None], pa.float32()),
            "s": ['é\x01"\\/\t', None],
            "tz": pa.array([datetime(1970, 1, 1, 0, 0, 1, 500000), None], pa.timestamp("us", tz="UTC")),
            "by": pa.array([b"\x0a\xff", None]),
            "ai": pa.array([[None, 3], None], pa.list_(pa.int32())),
            "m": pa.array([[{"key": "k", "value": None}], None]).cast(
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())]))
            ),
            "r": pa.array([{"x": None, "y": ""}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        }
    )


def test_writing() -> None:
    assert encode("json", WIDE, wide()).splitlines() == [
        '{"d":1E+5,"f":1.0E-5,"s":"é\\u0001\\"\\\\/\\t","tz":"1970-01-01 00:00:01.5Z","by":"Cv8=",'
        '"ai":[null,3],"m":{"k":null},"r":{"x":null,"y":""}}',
        '{"d":null,"f":null,"s":null,"tz":null,"by":null,"ai":null,"m":null,"r":null}',
    ]


def test_texts_that_are_not_utf8_when_writing() -> None:
    held = pa.array([b"a\xffb", b"\xc3\xa9"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 2, held.buffers())
    columns = {
        "s": t.STRING,
        "m": t.MapType(key=t.STRING, value=t.STRING),
        "r": t.RowType(fields=(t.Field("x", t.ArrayType(element=t.STRING)),)),
    }
    one = pa.array([0, 1, 2], pa.int32())
    entries = pa.StructArray.from_arrays([texts, texts], ["key", "value"])
    lists = pa.ListArray.from_arrays(one, texts)
    table = pa.table(
        {
            "s": texts,
            "m": pa.ListArray.from_arrays(one, entries),
            "r": pa.StructArray.from_arrays([lists], ["x"]),
        }
    )
    assert encode("json", columns, table).splitlines() == [
        '{"s":"a\ufffdb","m":{"a\ufffdb":"a\ufffdb"},"r":{"x":["a\ufffdb"]}}',
        '{"s":"é","m":{"é":"é"},"r":{"x":["é"]}}',
    ]


def test_writing_plain_numbers_without_nulls() -> None:
    options = {
        "json.encode.decimal-as-plain-number": "true",
        "json.encode.ignore-null-fields": "true",
        "json.timestamp-format.standard": "ISO-8601",
    }
    assert encode("json", WIDE, wide(), options).splitlines() == [
        '{"d":100000.000,"f":1.0E-5,"s":"é\\u0001\\"\\\\/\\t","tz":"1970-01-01T00:00:01.5Z","by":"Cv8=",'
        '"ai":[null,3],"m":{"k":null},"r":{"y":""}}',
        "{}",
    ]


def test_null_keys_and_nan_when_writing() -> None:
    columns = {"m": t.MapType(key=t.STRING, value=t.INT)}
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())]))
    table = pa.table({"m": pa.array([[{"key": None, "value": 1}, {"key": "a", "value": 2}]], kind)})
    with pytest.raises(ConnectorError, match="null keys"):
        encode("json", columns, table)
    drop = {"json.map-null-key.mode": "DROP"}
    assert encode("json", columns, table, drop) == '{"m":{"a":2}}\n'
    literal = {"json.map-null-key.mode": "LITERAL", "json.map-null-key.literal": "nul"}
    assert encode("json", columns, table, literal) == '{"m":{"nul":1,"a":2}}\n'
    with pytest.raises(ConnectorError, match="column 'm' as JSON"):
        encode("json", columns, table)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_lacks_is_named_with_its_column(odd: float) -> None:
    said = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(odd)]
    with pytest.raises(ConnectorError, match=f"'f' as JSON: Infinite or NaN: {said}\nJSON has"):
        encode("json", {"a": t.INT, "f": t.DOUBLE}, pa.table({"a": [1, 2], "f": [1.5, odd]}))
    inner = t.RowType(fields=(t.Field("x", t.ArrayType(element=t.DOUBLE)),))
    with pytest.raises(ConnectorError, match=r"column 'r\.x' as JSON"):
        encode("json", {"r": inner}, pa.table({"r": [{"x": [odd]}]}))
