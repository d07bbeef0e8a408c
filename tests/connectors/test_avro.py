"""Avro files and messages, without Spark: every type, evolution, files of other writers, damage."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.connectors.sources import table
from tidemill.connectors.formats.api import (
    Block,
    DecodeRequest,
    EncodeRequest,
    RecordError,
    TextEncoder,
    format_options,
)
from tidemill.connectors.formats.avro.container import CODECS
from tidemill.connectors.formats.avro.derive import Derivation, derived
from tidemill.connectors.formats.registry import find_format
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

Columns = Mapping[str, t.LogicalType]
MODERN = {"avro.timestamp_mapping.legacy": "false"}

ALL: dict[str, t.LogicalType] = {
    "flag": t.BOOLEAN,
    "tiny": t.TinyIntType(),
    "small": t.SmallIntType(),
    "number": t.INT,
    "large": t.BIGINT,
    "single": t.FloatType(),
    "float": t.DOUBLE,
    "text": t.STRING,
    "data": t.BYTES,
    "day": t.DATE,
    "time": t.TimeType(precision=3),
    "ms": t.TimestampType(precision=3),
    "us": t.TimestampType(precision=6),
    "instant": t.LocalZonedTimestampType(precision=3),
    "exact": t.DecimalType(precision=38, scale=4),
    "list": t.ArrayType(element=t.TimestampType(precision=6)),
    "entries": t.MapType(key=t.STRING, value=t.DecimalType(precision=5, scale=2)),
    "bag": t.MultisetType(element=t.STRING),
    "row": t.RowType(
        fields=(
            Field("a", t.INT),
            Field("m", t.ArrayType(element=t.MapType(key=t.STRING, value=t.DATE))),
        )
    ),
}
DAY = date(1969, 12, 31)
FULL: dict[str, Any] = {
    "flag": True,
    "tiny": -128,
    "small": -32768,
    "number": -(2**31),
    "large": 2**63 - 1,
    "single": 1.5,
    "float": -0.1,
    "text": "Zoë \U0001f600",
    "data": b"\0\xff",
    "day": DAY,
    "time": 86_399_999,
    "ms": datetime(1969, 12, 31, 23, 59, 59, 999000),
    "us": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "instant": datetime(2020, 2, 29, 1, 2, 3, 4000, UTC),
    "exact": Decimal("-1234567890123456789012345678901234.5678"),
    "list": [datetime(2001, 2, 3, 4, 5, 6, 789), None],
    "entries": [{"key": "a", "value": Decimal("-1.28")}, {"key": "b", "value": None}],
    "bag": [{"key": "x", "value": 3}],
    "row": {"a": 1, "m": [[{"key": "k", "value": DAY}], None]},
}
EMPTY = dict.fromkeys(ALL)


def fields(columns: Columns) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name, kind in columns.items())


def encoder(columns: Columns, options: Mapping[str, str]) -> TextEncoder:
    request = EncodeRequest(fields=fields(columns), changelog=False, options=options, time_zone="UTC")
    made = find_format("avro").encoder(request)
    assert isinstance(made, TextEncoder)
    return made


def rows_of(columns: Columns, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema(fields(columns)))


def file_of(columns: Columns, rows: list[dict[str, Any]], options: Mapping[str, str] = MODERN) -> bytes:
    stream = io.BytesIO()
    file = encoder(columns, options).open(pa.PythonFile(stream, "w"))
    file.write(rows_of(columns, rows))
    file.close()
    return stream.getvalue()


def read_file(
    data: bytes, columns: Columns, wanted: tuple[str, ...] = (), start: int = 0, end: int | None = None
) -> list[dict[str, Any]]:
    source = pa.BufferReader(data)
    last = sum(find_format("avro").group_rows(source)) if end is None else end
    request = DecodeRequest(
        columns=fields(columns),
        wanted=tuple(f for f in fields(columns) if not wanted or f.name in wanted),
        metadata=(),
        options={},
        time_zone="UTC",
    )
    block = Block(data=pa.py_buffer(b""), source=source, start=start, end=last)
    rows: list[dict[str, Any]] = find_format("avro").decoder(request).decode(block).to_pylist()
    return rows


def messages(
    columns: Columns, rows: list[dict[str, Any]], options: Mapping[str, str] = MODERN
) -> list[bytes]:
    found: list[bytes] = encoder(columns, options).texts(rows_of(columns, rows)).to_pylist()
    return found


def read_messages(
    data: list[bytes | None], columns: Columns, wanted: tuple[str, ...] = ()
) -> tuple[list[dict[str, Any]], list[int]]:
    request = DecodeRequest(
        columns=fields(columns),
        wanted=tuple(f for f in fields(columns) if not wanted or f.name in wanted),
        metadata=(),
        options=MODERN,
        time_zone="UTC",
    )
    found = find_format("avro").message_decoder(request).decode(data)
    return found.table.to_pylist(), found.messages.tolist()


def foreign(schema: Any, rows: Sequence[Mapping[str, Any]], codec: str = "null") -> bytes:
    """A file that fastavro has written."""
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), rows, codec=codec)
    return stream.getvalue()


def record(**types: Any) -> dict[str, Any]:
    made = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "r", "fields": made}


@pytest.mark.parametrize("codec", CODECS)
def test_files_hold_every_type(codec: str) -> None:
    data = file_of(ALL, [FULL, EMPTY, FULL], {**MODERN, "avro.codec": codec})
    assert read_file(data, ALL) == [FULL, EMPTY, FULL]


def test_messages_hold_every_type() -> None:
    written = messages(ALL, [FULL, EMPTY])
    assert read_messages([None, written[1], None, written[0]], ALL) == ([EMPTY, FULL], [1, 3])
    assert read_messages([*written], ALL, wanted=("row", "tiny")) == (
        [{"tiny": -128, "row": FULL["row"]}, {"tiny": None, "row": None}],
        [0, 1],
    )


def test_messages_have_flink_s_bytes() -> None:
    """Recorded from Flink 2.3 with its Kafka connector."""
    columns = {
        "k": t.INT,
        "a": t.BigIntType(nullable=False),
        "ts": t.TimestampType(precision=3),
        "d": t.DecimalType(precision=6, scale=2),
        "r": t.RowType(fields=(Field("x", t.INT),)),
    }
    moment = datetime(2020, 1, 1, 0, 0, 0, 123_000)
    row = {"k": 1, "a": 2, "ts": moment, "d": Decimal("-1.28"), "r": {"x": 7}}
    assert messages(columns, [row], {}) == [bytes.fromhex("02020402f6a1b7e6eb5b02028002020e")]


@pytest.mark.parametrize(
    ("number", "data"),
    [("1.27", "7f"), ("1.28", "0080"), ("-1.28", "80"), ("-1.29", "ff7f"), ("0", "00"), ("-327.68", "8000")],
)
def test_decimals_are_as_short_as_java_s(number: str, data: str) -> None:
    columns = {"d": t.DecimalType(precision=6, scale=2, nullable=False)}
    (message,) = messages(columns, [{"d": Decimal(number)}], {})
    assert message[1:].hex() == data


def test_others_read_the_files() -> None:
    columns = {"a": t.INT, "d": t.DecimalType(precision=4, scale=2), "day": t.DATE}
    data = file_of(columns, [{"a": 1, "d": Decimal("-1.28"), "day": DAY}], {"avro.codec": "deflate"})
    assert list(fastavro.reader(io.BytesIO(data))) == [{"a": 1, "d": Decimal("-1.28"), "day": DAY}]


def test_the_schema_is_the_one_that_flink_derives() -> None:
    columns = {
        "a": t.IntType(nullable=False),
        "ts": t.TimestampType(precision=3),
        "r": t.RowType(fields=(Field("x", t.ArrayType(element=t.STRING, nullable=False)),)),
    }
    found = json.loads(derived(fields(columns), Derivation(identifier="avro", legacy=True)))
    assert found == {
        "type": "record",
        "name": "record",
        "namespace": "org.apache.flink.avro.generated",
        "fields": [
            {"name": "a", "type": "int"},
            {
                "name": "ts",
                "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
                "default": None,
            },
            {
                "name": "r",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "record_r",
                        "fields": [{"name": "x", "type": {"type": "array", "items": ["null", "string"]}}],
                    },
                ],
                "default": None,
            },
        ],
    }


@pytest.mark.parametrize(
    ("kind", "options", "error"),
    [
        (t.TimestampType(precision=6), {}, "does not support TIMESTAMP type with precision: 6"),
        (t.LocalZonedTimestampType(precision=3), {}, "Unsupported to derive Schema for type: TIMESTAMP_LTZ"),
        (t.YearMonthIntervalType(), {}, "Unsupported to derive Schema for type: INTERVAL"),
        (t.MapType(key=t.INT, value=t.INT), {}, "non-string as key type of map. The key type is: INT"),
    ],
)
def test_types_without_a_schema_are_refused(kind: t.LogicalType, options: dict[str, str], error: str) -> None:
    with pytest.raises(TidemillError, match=error):
        encoder({"a": kind}, options)


def test_columns_are_found_by_name() -> None:
    data = file_of({"a": t.INT, "b": t.STRING}, [{"a": 1, "b": "x"}])
    assert read_file(data, {"b": t.STRING, "c": t.DATE}) == [{"b": "x", "c": None}]
    assert read_file(data, {"c": t.DATE, "a": t.BIGINT}) == [{"c": None, "a": 1}]
    with pytest.raises(RecordError, match="no field 'c', which is NOT NULL"):
        read_file(data, {"c": t.IntType(nullable=False)})
    with pytest.raises(RecordError, match="'B'"):
        read_file(data, {"B": t.STRING})


def test_the_unit_of_a_time_is_the_writer_s() -> None:
    """Flink takes microseconds for milliseconds here."""
    schema = record(
        us={"type": "long", "logicalType": "timestamp-micros"},
        t={"type": "long", "logicalType": "time-micros"},
        d={"type": "fixed", "name": "f", "size": 3, "logicalType": "decimal", "precision": 6, "scale": 1},
        e={"type": "enum", "name": "e", "symbols": ["A", "B"]},
    )
    row = {"us": 1_500_000, "t": 7_000, "d": Decimal("12.5"), "e": "B"}
    columns = {
        "us": t.TimestampType(precision=3),
        "t": t.TimeType(precision=3),
        "d": t.DecimalType(precision=8, scale=3),
        "e": t.STRING,
    }
    assert read_file(foreign(schema, [row]), columns) == [
        {"us": datetime(1970, 1, 1, 0, 0, 1, 500_000), "t": 7, "d": Decimal("12.500"), "e": "B"}
    ]


def test_named_types_may_be_used_again_and_unread_fields_be_anything() -> None:
    inner = {"type": "record", "name": "x", "fields": [{"name": "q", "type": "int"}]}
    schema = record(a=inner, b=["null", "x"], u=["int", "string"])
    rows: list[dict[str, Any]] = [
        {"a": {"q": 1}, "b": {"q": 2}, "u": "t"},
        {"a": {"q": 3}, "b": None, "u": 1},
    ]
    kind = t.RowType(fields=(Field("q", t.INT),))
    assert read_file(foreign(schema, rows), {"b": kind}) == [{"b": {"q": 2}}, {"b": None}]
    with pytest.raises(RecordError, match="Field 'u' cannot be read: a union of several types"):
        read_file(foreign(schema, rows), {"u": t.STRING})


def test_flink_writes_files_of_a_union_with_null() -> None:
    schema = ["null", record(a="int", b="int")]
    data = foreign(schema, [{"a": 1, "b": 2}])
    assert read_file(data, {"a": t.INT, "b": t.INT}) == [{"a": 1, "b": 2}]
    assert read_file(data, {"b": t.INT}) == [{"b": 2}]


def test_a_range_of_rows_is_read_from_many_blocks() -> None:
    columns = {"a": t.INT, "text": t.STRING}
    rows = [{"a": n, "text": "x" * 1000} for n in range(300)]
    data = file_of(columns, rows)
    groups = find_format("avro").group_rows(pa.BufferReader(data))
    assert len(groups) > 3
    assert sum(groups) == 300
    assert read_file(data, columns, wanted=("a",), start=63, end=201) == [{"a": n} for n in range(63, 201)]
    request = DecodeRequest(columns=fields(columns), wanted=(), metadata=(), options={}, time_zone="UTC")
    block = Block(data=pa.py_buffer(b""), source=pa.BufferReader(data), start=5, end=9)
    assert find_format("avro").decoder(request).decode(block).num_rows == 4


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda data: b"", "Not an Avro data file"),
        (lambda data: b"PAR1" + data[4:], "Not an Avro data file"),
        (lambda data: data[:20], "cut off"),
        (lambda data: data[:-20], "cut off"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "Invalid sync"),
        (lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:], "checksum is wrong|Damaged"),
    ],
)
def test_damaged_files_are_named(damage: Any, error: str) -> None:
    data = file_of({"a": t.INT, "b": t.STRING}, [{"a": n, "b": "text" * n} for n in range(9)])
    with pytest.raises(pa.ArrowInvalid, match=error):
        read_file(damage(data), {"a": t.INT})


def test_a_message_of_another_schema_is_named_with_what_was_expected() -> None:
    good = messages({"a": t.INT, "b": t.STRING}, [{"a": 1, "b": "x"}])[0]
    with pytest.raises(RecordError, match=r"schema of the fields \(a, b\)") as found:
        read_messages([good, None, b"\x02\x02\x02\x50x"], {"a": t.INT, "b": t.STRING})
    assert found.value.line == 2
    assert found.value.record == "02 02 02 50 78"


def test_a_value_that_does_not_fit_names_column_and_message() -> None:
    written = messages({"a": t.INT}, [{"a": 1}, {"a": 300}])
    with pytest.raises(RecordError, match="'a'") as found:
        read_messages([*written], {"a": t.TinyIntType()})
    assert found.value.line == 1


def test_json_is_refused_by_name() -> None:
    found = find_format("avro")
    own = format_options(found, {"avro.encoding": "json"})
    declared = table({"a": t.INT}, {})
    with pytest.raises(NotSupportedError, match=r"avro\.encoding"):
        found.validate(declared, own, role="source")


def test_names_that_avro_does_not_know_are_refused() -> None:
    with pytest.raises(ValidationError, match="Column 'a-b' cannot be a field of an Avro record"):
        encoder({"a-b": t.INT}, {})


def test_null_in_a_column_that_is_not_null_is_named() -> None:
    data = file_of({"a": t.INT}, [{"a": 1}, {"a": None}])
    with pytest.raises(RecordError, match="Column 'a' is NOT NULL") as found:
        read_file(data, {"a": t.IntType(nullable=False)})
    assert found.value.line == -1  # lines are those of texts
