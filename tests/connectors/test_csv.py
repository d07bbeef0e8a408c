"""CSV as Flink 2.3 reads and writes it; the expected rows are what the real engine gave."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.formats import decode, encode
from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.csv import decode as csv_decode
from tidemill.connectors.formats.csv.decode import CsvDecoder
from tidemill.types import logical as t

THREE = {"a": t.INT, "b": t.STRING, "c": t.DOUBLE}
TWO = {"a": t.STRING, "b": t.INT}
LENIENT = {"csv.ignore-parse-errors": "true"}


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (
            '1,x,2.5\n 2 , y ,3 \n"3","q,""z",4\r\n5,,1\n',
            {},
            [(1, "x", 2.5), (2, " y ", 3), (3, 'q,"z', 4), (5, "", 1)],
        ),
        (
            '1,"multi\nline",1\n2,ab"c,2\n3, "q",3\n',
            {},
            [(1, "multi\nline", 1), (2, 'ab"c', 2), (3, ' "q"', 3)],
        ),
        (
            '1,N,1\n2,"N",2\nN,x,N\n',
            {"csv.null-literal": "N"},
            [(1, None, 1), (2, None, 2), (None, "x", None)],
        ),
        ('1,,1\n2,"",2\n,x,\n', {"csv.null-literal": ""}, [(1, None, 1), (2, None, 2), (None, "x", None)]),
        ("#1,x,1\n  # 2\n3,y,2\n", {"csv.allow-comments": "true"}, [(3, "y", 2)]),
        ("1\tx\t1", {"csv.field-delimiter": "\\t"}, [(1, "x", 1)]),
        ("1;x;1", {"csv.field-delimiter": "\\;"}, [(1, "x", 1)]),
        ("1\x01x\x011", {"csv.field-delimiter": "\\u0001"}, [(1, "x", 1)]),
        ("1,'x,y',1\n", {"csv.quote-character": "'"}, [(1, "x,y", 1)]),
        ('1,"x",1\n', {"csv.disable-quote-character": "true"}, [(1, '"x"', 1)]),
        ('1,a\\,b,1\n2,"x\\"y",2\n', {"csv.escape-character": "\\"}, [(1, "a,b", 1), (2, 'x"y', 2)]),
        ("1,x,1,\n", {}, [(1, "x", 1)]),
        ("1,x,1\r2,y,2\r", {}, [(1, "x", 1), (2, "y", 2)]),
        ("", {}, []),
        ("1,x\n2,y,3\n", LENIENT, [(1, "x", None), (2, "y", 3)]),
        ("1,x,1,9\n2,y,3\n", LENIENT, [(2, "y", 3)]),
        (
            'z,x,1\n2,y,3\n,,\n\n \n7,"abc"d,1\n',
            LENIENT,
            [(None, "x", 1), (2, "y", 3), (None, "", None), (None, None, None), (None, None, None)],
        ),
    ],
)
def test_records(text: str, options: dict[str, str], expected: list[tuple[Any, ...]]) -> None:
    assert decode("csv", THREE, text, options) == expected


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (t.BOOLEAN, "true\nFALSE\n1\nyes\n\nTrue \n", [True, False, False, False, False, True]),
        (t.TinyIntType(), "1\n+5\n-0\n0x1\n128\n1.5\n", [1, 5, 0, None, None, None]),
        (t.INT, "2147483648\n1.9\n 3\n007\n1_0\n", [None, None, 3, 7, None]),
        (t.BIGINT, "9223372036854775808\n-9223372036854775808\n+4\n", [None, -(2**63), 4]),
        (
            t.DOUBLE,
            "1e3\nInfinity\n-Infinity\ninf\nnan\n1d\n1.5f\n0x1p3\n.5\n5.\n",
            [1000, float("inf"), -float("inf"), None, None, 1, 1.5, 8, 0.5, 5],
        ),
        (
            t.DecimalType(precision=5, scale=2),
            "1.005\n123.456\n12345.6\n1e2\nabc\n 3 \n-0.005\n999.995\n",
            [Decimal(x) if x else None for x in ("1.01", "123.46", "", "100.00", "", "", "-0.01", "")],
        ),
        (
            t.DATE,
            "2020-01-01\n2020-1-2\n2020-02-30\n 2020-01-01\n0001-01-01\n",
            [date(2020, 1, 1), date(2020, 1, 2), date(2020, 3, 1), None, date(1, 1, 1)],
        ),
        (
            t.TimeType(precision=3),
            "12:34:56\n12:34:56.7891\n12:34\n1:2:3\n24:00:00\n",
            [45296000, 45296789, 45240000, None, None],
        ),
        (
            t.TimestampType(precision=3),
            "2020-01-01 00:00:00\n2020-01-01 00:00:00.123456\n2020-01-01T00:00:00\n2020-01-01\n"
            " 2020-01-01 00:00:01 \n2020-02-30 00:00:00\n1969-12-31 23:59:59.9999\n",
            [
                datetime(2020, 1, 1),
                datetime(2020, 1, 1, 0, 0, 0, 123000),
                None,
                None,
                datetime(2020, 1, 1, 0, 0, 1),
                datetime(2020, 2, 29),
                datetime(1969, 12, 31, 23, 59, 59, 999000),
            ],
        ),
        (
            t.LocalZonedTimestampType(precision=3),
            "2020-01-01 00:00:00\n2020-01-01 00:00:00Z\n2020-01-01 00:00:00.5Z\n",
            [None, datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)],
        ),
        (t.BYTES, "aGk=\nhi\n\n", [b"hi", None, b""]),
        (
            t.ArrayType(element=t.INT),
            "1;2;3\n\n7\n1;;2\n1;x\n",
            [[1, 2, 3], [], [7], [1, None, 2], [1, None]],
        ),
        (
            t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.STRING))),
            "1;z\n2\n1;2;3\n",
            [{"x": 1, "y": "z"}, {"x": 2, "y": None}, {"x": 1, "y": "2"}],
        ),
    ],
)
def test_values_of_each_type(kind: t.LogicalType, text: str, expected: list[Any]) -> None:
    assert [v for (v,) in decode("csv", {"a": kind}, text, LENIENT)] == expected


def test_null_literal_names_elements_of_arrays() -> None:
    columns = {"a": t.ArrayType(element=t.INT), "b": t.INT}
    assert decode("csv", columns, "N;1,2\nN,N\n", {"csv.null-literal": "N"}) == [
        ([None, 1], 2),
        ([None], None),
    ]
    texts = {"a": t.ArrayType(element=t.STRING)}
    assert decode("csv", texts, "N;x\nN\n", {"csv.null-literal": "N"}) == [([None, "x"],), ([None],)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (",x,1\n", 0, "Fail to deserialize at field: a"),
        ("1,x,1\n2,y,ten\n", 1, 'field: c. "ten" is not DOUBLE'),
        ("1,x,1\n\n2,y,2\n", 1, "Row length mismatch. 3 fields expected but was 1"),
        ("1,x,1,9\n", 0, "Too many entries: expected at most 3"),
        ('1,"a\nb",1\n2,"c,3\n', 2, "Missing closing quote"),
        ('1,"a"b,1\n', 0, "Expected column separator"),
        ("0x10,x,1\n", 0, "Fail to deserialize at field: a"),
        ("1,x,inf\n", 0, "Fail to deserialize at field: c"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        decode("csv", THREE, text)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_invalid_utf8_is_an_error() -> None:
    with pytest.raises(RecordError, match="Invalid UTF-8"):
        decode("csv", TWO, b"x,1\n\xff\xfe,2\n")


def test_projection_reads_only_what_is_wanted() -> None:
    assert decode("csv", THREE, "x,b,1\n", wanted=("b",)) == [("b",)]


def test_both_ways_of_reading_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    pieces = ["1", "-7", "x", "2.5", '"q"', '"a,b"', '"n\nl"', '"d""d"', "", " ", "é", "true", "2020-01-01"]
    columns = {"a": t.STRING, "b": t.STRING, "c": t.INT}
    for _ in range(60):
        lines = [
            f"{draw.choice(pieces)},{draw.choice(pieces)},{draw.choice(['1', '-3', ' 4'])}" for _ in range(8)
        ]
        text = "\n".join(lines) + "\n"
        fast = decode("csv", columns, text)
        with monkeypatch.context() as patch:
            patch.setattr(CsvDecoder, "_fast", CsvDecoder._careful)
            assert decode("csv", columns, text) == fast


def test_blocks_of_a_text_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records end in any way, some are longer than a block, some do not fit."""
    draw = random.Random(5)
    columns = {"a": t.BIGINT, "b": t.STRING, "c": t.DOUBLE, "d": t.TimestampType(precision=3)}
    numbers = ["1", "-7", " 4 ", "\t5", "999999999999"]
    odd = ["0x1F", " -0X2", "", "1e3", "NaN", "9" * 25]
    texts = ["", " ", "x", "0x10", "é", "y" * 70, "N"]
    for round_ in range(300):
        few = draw.random() < 0.3
        lines = [
            ",".join(
                [
                    draw.choice(odd if few and draw.random() < 0.1 else numbers),
                    draw.choice(texts),
                    draw.choice(["1", "2.5", "-3e2", *(odd if few and draw.random() < 0.1 else ())]),
                    f"2020-01-01 00:00:{draw.randrange(60):02}.125",
                ]
            )
            + draw.choice(["\n", "\n", "\r\n", "\r", "\n\n" if few and draw.random() < 0.1 else "\n"])
            for _ in range(draw.randrange(1, 20))
        ]
        text = "".join(lines)
        options = {"csv.null-literal": draw.choice(["N", ""])} if round_ % 2 else {}
        expected = _rows_or_error(columns, text, options, careful=True)
        for size in (64, 256, 1 << 20):
            monkeypatch.setattr(csv_decode, "_BLOCK", size)
            assert _rows_or_error(columns, text, options) == expected, (text, size)


@pytest.mark.parametrize("options", [{}, {"csv.null-literal": ""}, LENIENT], ids=str)
def test_empty_lines_between_records_of_text(options: dict[str, str]) -> None:
    """They have one field, wherever they are, and are told from records whose fields are all empty."""
    columns: dict[str, t.LogicalType] = {"a": t.STRING, "b": t.STRING}
    for text in (
        "\n",
        "x,y\n\n\n",
        "\r\nx,y\r\n",
        "x,y\n\nz,\n",
        "x,y\r\n\r\nz,\r\n",
        "x,y\r\rz,\r",
        '"p\n\nq",y\n,\n',
    ):
        found = _rows_or_error(columns, text, options)
        assert found == _rows_or_error(columns, text, options, careful=True), text
        assert ("Row length mismatch" in found) == (
            "csv.ignore-parse-errors" not in options and "p" not in text
        )
    assert len(decode("csv", columns, ",\n,\n", options)) == 2
    assert len(decode("csv", {"a": t.STRING}, "x\n\ny\n", options)) == 3


def _rows_or_error(
    columns: dict[str, t.LogicalType], text: str, options: dict[str, str], *, careful: bool = False
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        if careful:
            patch.setattr(CsvDecoder, "_fast", CsvDecoder._careful)
        try:
            return repr(decode("csv", columns, text, options))
        except RecordError as e:
            return f"{e.reason} {e.line}"


def test_numbers_beside_text_with_an_x_are_read_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: CsvDecoder, data: pa.Buffer) -> pa.Table:
        raise AssertionError("read record by record")

    monkeypatch.setattr(CsvDecoder, "_careful", slow)
    monkeypatch.setattr(csv_decode, "_BLOCK", 64)
    long = "0x" * 100
    text = f"1,x,2.5\n -2 ,{long},\t3\n" + "4,0X1,1\n" * 50
    assert decode("csv", THREE, text) == [(1, "x", 2.5), (-2, long, 3.0), *[(4, "0X1", 1.0)] * 50]


def test_quoting_when_writing() -> None:
    values = ["x y", "", "a'q", "back\\s", "é;", "--", "0123456789012345678901234", 'd"d', None]
    table = pa.table({"a": pa.array(values), "b": pa.array(range(9), pa.int32())})
    assert encode("csv", TWO, table).splitlines() == [
        '"x y",0',
        ",1",
        '"a\'q",2',
        '"back\\s",3',
        "é;,4",
        "--,5",
        '"0123456789012345678901234",6',
        '"d""d",7',
        ",8",
    ]


def test_texts_that_are_not_utf8_when_writing() -> None:
    """As Java writes them; Parquet and ORC may hold any bytes as text."""
    held = pa.array([b"a\xffb", None, b"\xc3", b"\xa9", b"c\xe9 d"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 5, held.buffers(), null_count=1)
    table = pa.table({"a": texts, "b": pa.array(range(5), pa.int32())})
    assert encode("csv", TWO, table).splitlines() == [
        "a\ufffdb,0",
        ",1",
        "\ufffd,2",  # halves of a character that would be one if they stood together
        "\ufffd,3",
        '"c\ufffd d",4',
    ]
    alone = pa.table({"a": texts.drop_null()})
    assert encode("raw", {"a": t.STRING}, alone).splitlines()[0] == "a\ufffdb"


def test_numbers_and_times_when_writing() -> None:
    columns = {
        "d": t.DecimalType(precision=20, scale=3),
        "f": t.DOUBLE,
        "ts": t.TimestampType(precision=3),
        "tz": t.LocalZonedTimestampType(precision=3),
        "a": t.ArrayType(element=t.STRING),
    }
    table = pa.table(
        {
            "d": pa.array([Decimal("100000.000"), Decimal("-0.500")], pa.decimal128(20, 3)),
            "f": [1e10, 0.1],
            "ts": pa.array([datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 123000)], pa.timestamp("us")),
            "tz": pa.array([datetime(1970, 1, 1, 0, 0, 1, 500000)] * 2, pa.timestamp("us", tz="UTC")),
            "a": [["a", None, "b c"], []],
        }
    )
    assert encode("csv", columns, table) == (
        '1E+5,1.0E10,"2020-01-01 00:00:00","1970-01-01 00:00:01.5Z","a;;b c"\n'
        '-0.5,0.1,"2020-01-01 00:00:00.123","1970-01-01 00:00:01.5Z",\n'
    )
