"""CDC formats: every message gives the changes that Flink 2.3 gave, or the same refusal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.formats import decode, encode
from tidemill.connectors.formats.api import RecordError
from tidemill.types import logical as t

PAIR = {"a": t.INT, "b": t.STRING}
Rows = list[tuple[Any, ...]]

GOOD: list[tuple[str, str, Rows]] = [
    ("debezium-json", '{"op":"c","after":{"a":1,"b":"x"}}', [("+I", 1, "x")]),
    ("debezium-json", '{"op":"r","after":{"a":"1","b":2}}', [("+I", 1, "2")]),
    (
        "debezium-json",
        '{"op":"u","before":{"a":5},"after":{"a":6},"source":7}',
        [("-U", 5, None), ("+U", 6, None)],
    ),
    ("debezium-json", '{"op":"d","before":{"a":1}}', [("-D", 1, None)]),
    ("debezium-json", "", []),
    ("canal-json", '{"type":"INSERT","data":[{"a":"1","b":"x"},{"a":2}]}', [("+I", 1, "x"), ("+I", 2, None)]),
    (
        "canal-json",
        '{"type":"UPDATE","data":[{"a":"1","b":"y"},{"a":2,"b":"z"}],"old":[{"b":"x"},{"b":null}]}',
        [("-U", 1, "x"), ("+U", 1, "y"), ("-U", 2, None), ("+U", 2, "z")],
    ),
    (
        "canal-json",
        '{"type":"UPDATE","data":[{"a":1,"b":"y"},{"a":2,"b":"z"}],"old":[{"a":0},{"b":null}]}',
        [("-U", 0, "y"), ("+U", 1, "y"), ("-U", 2, None), ("+U", 2, "z")],
    ),
    ("canal-json", '{"type":"DELETE","data":[{"a":"1","b":"y"}]}', [("-D", 1, "y")]),
    ("canal-json", '{"type":"CREATE","data":null}', []),
    ("canal-json", '{"type":"INSERT","data":[]}', []),
    ("maxwell-json", '{"type":"insert","data":{"a":"1","b":"x"}}', [("+I", 1, "x")]),
    (
        "maxwell-json",
        '{"type":"update","data":{"a":1,"b":"y"},"old":{"b":null}}',
        [("-U", 1, None), ("+U", 1, "y")],
    ),
    ("maxwell-json", '{"type":"update","data":{"a":1,"b":"y"},"old":{}}', [("-U", 1, "y"), ("+U", 1, "y")]),
    ("maxwell-json", '{"type":"delete","data":{"a":1,"b":"y"}}', [("-D", 1, "y")]),
    ("ogg-json", '{"op_type":"I","after":{"a":1,"b":"x"}}', [("+I", 1, "x")]),
    ("ogg-json", '{"op_type":"U","before":{"a":1},"after":{"b":"q"}}', [("-U", 1, None), ("+U", None, "q")]),
    ("ogg-json", '{"op_type":"D","before":{"a":1}}', [("-D", 1, None)]),
]

BAD: list[tuple[str, str, str]] = [
    ("debezium-json", '{"op":"c","before":null,"after":null}', "after"),
    ("debezium-json", '{"op":"u","before":{"a":1},"after":null}', "after"),
    (
        "debezium-json",
        '{"op":"d","before":null}',
        'The "before" field of DELETE message is null.*REPLICA IDENTITY',
    ),
    (
        "debezium-json",
        '{"op":"u","after":{"a":1}}',
        'The "before" field of UPDATE message is null.*REPLICA IDENTITY',
    ),
    ("debezium-json", '{"op":"t"}', 'Unknown "op" value "t"'),
    ("debezium-json", '{"after":{"a":3}}', 'no "op"'),
    ("debezium-json", "null", "Corrupt Debezium JSON message 'null'"),
    ("debezium-json", '{"op":"c","after":{"a":"ten"}}', 'field: after.a. Value: "ten"'),
    ("debezium-json", '{"op":"c","after":[]}', "field: after"),
    ("canal-json", '{"type":"UPDATE","data":[{"a":"1"}],"old":null}', "old"),
    ("canal-json", '{"type":"UPDATE","data":[{"a":1},{"a":2}],"old":[{"a":0}]}', "old"),
    ("canal-json", '{"type":"ALTER","data":null}', 'Unknown "type" value "ALTER"'),
    ("canal-json", '{"type":"INSERT","data":[null]}', "data"),
    ("canal-json", '{"type":"INSERT"}', "data"),
    ("canal-json", "bad", "Corrupt Canal JSON message 'bad'"),
    ("maxwell-json", '{"type":"update","data":{"a":1},"old":null}', "old"),
    ("maxwell-json", '{"type":"bootstrap-insert","data":{"a":1}}', "bootstrap-insert"),
    ("maxwell-json", '{"type":"insert"}', "data"),
    ("ogg-json", '{"op_type":"U","after":{"a":1}}', "UPDATE message is null.*Ogg Postgres.*REPLICA IDENTITY"),
    ("ogg-json", '{"op_type":"T"}', 'Unknown "op_type" value "T"'),
    ("ogg-json", '{"op_type":"I","after":null}', "after"),
]


@pytest.mark.parametrize(("identifier", "message", "expected"), GOOD)
def test_messages(identifier: str, message: str, expected: Rows) -> None:
    assert decode(identifier, PAIR, message + "\n") == expected


@pytest.mark.parametrize("identifier", ["debezium-json", "canal-json", "maxwell-json", "ogg-json"])
def test_many_messages_keep_their_order_and_skip_the_bad_ones(identifier: str) -> None:
    good = [(text, rows) for name, text, rows in GOOD if name == identifier]
    bad = [text for name, text, _ in BAD if name == identifier and "ten" not in text and "2}]" not in text]
    text = "\n".join([*bad, *(x for x, _ in good), *bad]) + "\n"
    expected = [row for _, rows in good for row in rows]
    assert decode(identifier, PAIR, text, {f"{identifier}.ignore-parse-errors": "true"}) == expected


@pytest.mark.parametrize(("identifier", "message", "reason"), BAD)
def test_refused_messages_name_line_and_reason(identifier: str, message: str, reason: str) -> None:
    first = next(text for name, text, _ in GOOD if name == identifier)
    with pytest.raises(RecordError, match=reason) as caught:
        decode(identifier, PAIR, f"{first}\n\n{message}\n")
    assert caught.value.line == 2


def test_a_field_that_does_not_parse_is_null_when_lenient() -> None:
    options = {"debezium-json.ignore-parse-errors": "true"}
    assert decode("debezium-json", PAIR, '{"op":"c","after":{"a":"ten","b":1}}', options) == [
        ("+I", None, "1")
    ]


def test_debezium_schema_part() -> None:
    text = '{"schema":{"type":"struct"},"payload":{"op":"c","after":{"a":1,"b":"x"}}}\n'
    options = {"debezium-json.schema-include": "true"}
    assert decode("debezium-json", PAIR, text, options) == [("+I", 1, "x")]
    found = decode("debezium-json", PAIR, text, options, metadata={"s": ("schema", t.STRING)})
    assert found == [("+I", 1, "x", '{"type":"struct"}')]
    with pytest.raises(RecordError, match=r"payload.*schema-include"):
        decode("debezium-json", PAIR, '{"op":"c","after":{"a":1}}\n', options)


def test_metadata() -> None:
    millis = t.LocalZonedTimestampType(precision=3)
    text = (
        '{"op":"u","before":{"a":1},"after":{"a":2},"ts_ms":1500,'
        '"source":{"ts_ms":2500,"db":"shop","table":"t","n":null}}\n'
    )
    keys = {
        "i": ("ingestion-timestamp", millis),
        "st": ("source.timestamp", millis),
        "d": ("source.database", t.STRING),
        "sc": ("source.schema", t.STRING),
    }
    first, second = datetime(1970, 1, 1, 0, 0, 1, 500000, UTC), datetime(1970, 1, 1, 0, 0, 2, 500000, UTC)
    assert decode("debezium-json", {"a": t.INT}, text, metadata=keys) == [
        ("-U", 1, first, second, "shop", None),
        ("+U", 2, first, second, "shop", None),
    ]
    text = '{"type":"INSERT","data":[{"a":"1"}],"database":"d","pkNames":["a"],"sqlType":{"a":4},"es":1500}\n'
    keys = {
        "d": ("database", t.STRING),
        "pk": ("pk-names", t.ArrayType(element=t.STRING)),
        "st": ("sql-type", t.MapType(key=t.STRING, value=t.INT)),
        "es": ("event-timestamp", millis),
    }
    found = decode("canal-json", {"a": t.INT}, text, metadata=keys)
    assert found == [("+I", 1, "d", ["a"], [{"key": "a", "value": 4}], first)]
    # Flink keeps milliseconds of both.
    times = '"op_ts":"1970-01-01 00:00:01.500999","current_ts":"1970-01-01T00:00:02.500999"'
    text = f'{{"op_type":"I","after":{{"a":1}},{times}}}\n'
    micros = t.LocalZonedTimestampType(precision=6)
    keys = {"e": ("event-timestamp", micros), "i": ("ingestion-timestamp", micros)}
    assert decode("ogg-json", {"a": t.INT}, text, metadata=keys) == [("+I", 1, first, second)]
    text = '{"type":"delete","data":{"a":1},"table":"t","ts":1600000000}\n'
    keys = {"t": ("table", t.STRING), "i": ("ingestion-timestamp", millis)}
    seconds = datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)
    assert decode("maxwell-json", {"a": t.INT}, text, metadata=keys) == [("-D", 1, "t", seconds)]


def test_canal_filters_look_before_types() -> None:
    text = (
        '{"type":"INSERT","database":"other","table":"p","data":[{"a":"A1"}]}\n'
        '{"type":"INSERT","database":"shop","table":"p1","data":[{"a":"1"}]}\n'
        '{"type":"ALTER","database":"shop","table":"q"}\n'
    )
    options = {"canal-json.database.include": "sh.*", "canal-json.table.include": "p[0-9]"}
    assert decode("canal-json", {"a": t.INT}, text, options) == [("+I", 1)]


def test_nested_columns_change_too() -> None:
    columns = {"a": t.INT, "r": t.RowType(fields=(t.Field("x", t.INT),)), "l": t.ArrayType(element=t.INT)}
    text = '{"type":"update","data":{"a":1,"r":{"x":2},"l":[1]},"old":{"l":null}}\n'
    assert decode("maxwell-json", columns, text) == [("-U", 1, {"x": 2}, None), ("+U", 1, {"x": 2}, [1])]


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("debezium-json", '{"before":null,"after":%s,"op":"c"}|{"before":%s,"after":null,"op":"d"}'),
        ("canal-json", '{"data":[%s],"type":"INSERT"}|{"data":[%s],"type":"DELETE"}'),
        ("maxwell-json", '{"data":%s,"type":"insert"}|{"data":%s,"type":"delete"}'),
        ("ogg-json", '{"before":null,"after":%s,"op_type":"I"}|{"before":%s,"after":null,"op_type":"D"}'),
    ],
)
def test_a_changelog_is_written_as_inserts_and_deletes(identifier: str, expected: str) -> None:
    table = pa.table(
        {"a": pa.array([1, 2, 3, 4], pa.int32()), "b": ["x"] * 4, "$kind": pa.array([0, 1, 2, 3], pa.int8())}
    )
    insert, delete = expected.split("|")
    row: Callable[[int], str] = '{{"a":{},"b":"x"}}'.format
    lines = [insert % row(1), delete % row(2), insert % row(3), delete % row(4)]
    text = encode(identifier, PAIR, table)
    assert text.splitlines() == lines
    assert [r[:2] for r in decode(identifier, PAIR, text)] == [("+I", 1), ("-D", 2), ("+I", 3), ("-D", 4)]
