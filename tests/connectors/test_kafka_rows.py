"""Which rows the messages of a Kafka table are, as Flink's connector 5.0 gives them; without a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from tests.connectors.sources import table
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.connectors.api import SourceRequest
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.connectors.kafka.rows import METADATA
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.connectors.registry import connector
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field

JSON = {"properties.bootstrap.servers": "h:1", "topic": "t", "scan.startup.mode": "earliest-offset"}
BY_KEY = {
    "connector": "upsert-kafka",
    "properties.bootstrap.servers": "h:1",
    "topic": "t",
    "key.format": "json",
    "value.format": "json",
}


@dataclass(frozen=True)
class Said:
    """Stands for a message."""

    place: int
    data: tuple[bytes | None, bytes | None]

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes | None:
        return self.data[0]

    def value(self) -> bytes | None:
        return self.data[1]

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1_700_000_000_123

    def headers(self) -> list[tuple[str, bytes]] | None:
        return [("h", b"1"), ("h", b"2")]

    def leader_epoch(self) -> int | None:
        return None


def read(
    columns: Mapping[str, t.LogicalType],
    options: Mapping[str, str],
    messages: Sequence[tuple[bytes | None, bytes | None]],
    *,
    key: tuple[str, ...] = (),
    wanted: Sequence[str] = (),
    sequence: bool = False,
) -> list[dict[str, Any]]:
    """The rows of messages at the offsets 10, 11, ...; of a changelog with their kinds."""
    given = {"connector": "kafka", **options}
    if given["connector"] == "kafka":
        given = {**JSON, **given}
    physical = {name: kind for name, kind in columns.items() if name not in METADATA}
    extra = {name: kind for name, kind in columns.items() if name in METADATA}
    declared = replace(table(physical, given, metadata=extra), primary_key=key)
    request = SourceRequest(
        table=declared,
        options=given,
        fields=tuple(Field(n, k) for n, k in columns.items() if not wanted or n in wanted),
        metadata={name: name for name in extra},
        sequence=sequence,
        parallelism=1,
        time_zone="UTC",
        streaming=True,
    )
    source = connector(given).source(request)
    assert isinstance(source, KafkaSource)
    part = KafkaRange(topic="t", partition=3, start=10, end=10 + len(messages), number=5)
    said: list[Any] = [Said(10 + n, data) for n, data in enumerate(messages)]
    rows: list[dict[str, Any]] = source.reader.rows.table(said, part).to_pylist()
    for row in rows:
        if KIND_COLUMN in row:
            row[KIND_COLUMN] = RowKind(row[KIND_COLUMN]).short
    return rows


def test_a_column_of_key_and_value_is_the_value_s() -> None:
    options = {"key.format": "json", "key.fields": "a", "value.format": "json"}
    assert read({"a": t.INT, "b": t.INT}, options, [(b'{"a":1}', b'{"a":2,"b":3}')]) == [{"a": 2, "b": 3}]


def test_columns_of_the_key_may_have_a_prefix() -> None:
    options = {
        "key.format": "json",
        "key.fields": "k_a;k_b",
        "key.fields-prefix": "k_",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    columns = {"k_a": t.INT, "k_b": t.STRING, "a": t.INT}
    messages = [(b'{"a":1,"b":"x"}', b'{"a":2}'), (None, b'{"a":3}'), (b'{"a":4}', None)]
    assert read(columns, options, messages) == [
        {"k_a": 1, "k_b": "x", "a": 2},
        {"k_a": None, "k_b": None, "a": 3},
    ]
    assert read(columns, options, messages, wanted=["k_b"]) == [{"k_b": "x"}, {"k_b": None}]


def test_a_prefix_keeps_columns_of_key_and_value_apart_that_have_one_name() -> None:
    options = {
        "key.format": "json",
        "key.fields-prefix": "k_",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    columns = {"k_a": t.INT, "a": t.BIGINT}
    messages = [(b'{"a":1}', b'{"a":2}'), (b'{"a":3}', b'{"a":null}')]
    assert read(columns, {**options, "key.fields": "k_a"}, messages) == [
        {"k_a": 1, "a": 2},
        {"k_a": 3, "a": None},
    ]
    gone = read(columns, {**BY_KEY, **options}, [(b'{"a":1}', None)], key=("k_a",))
    assert gone == [{"k_a": 1, "a": None, KIND_COLUMN: "-D"}]


def test_raw_keys_and_values_may_be_missing() -> None:
    options = {
        "key.format": "raw",
        "key.fields": "k",
        "value.format": "raw",
        "value.fields-include": "EXCEPT_KEY",
    }
    messages = [(b"k1", b"v1"), (None, b"v2"), (b"k3", None), (b"", b"")]
    rows = read({"k": t.STRING, "v": t.STRING}, options, messages)
    assert [(r["k"], r["v"]) for r in rows] == [("k1", "v1"), (None, "v2"), ("k3", None), ("", "")]


def test_a_message_without_a_value_deletes_its_key() -> None:
    messages = [
        (b'{"k":1}', b'{"k":1,"a":10}'),
        (b'{"k":2}', b'{"k":2,"a":20}'),
        (b'{"k":1}', b'{"k":1,"a":12}'),
        (b'{"k":2}', None),
    ]
    rows = read({"k": t.INT, "a": t.INT}, BY_KEY, messages, key=("k",))
    assert [(r[KIND_COLUMN], r["k"], r["a"]) for r in rows] == [
        ("+U", 1, 10),
        ("+U", 2, 20),
        ("+U", 1, 12),
        ("-D", 2, None),
    ]
    without = {**BY_KEY, "value.fields-include": "EXCEPT_KEY"}
    rows = read({"k": t.INT, "a": t.INT}, without, [(b'{"k":1}', b'{"k":9,"a":1}')], key=("k",))
    assert [(r["k"], r["a"]) for r in rows] == [(1, 1)]


def test_metadata() -> None:
    assert read({"a": t.INT, **METADATA}, {"format": "json"}, [(None, b'{"a":1}')]) == [
        {
            "a": 1,
            "topic": "t",
            "partition": 3,
            "headers": [{"key": "h", "value": b"2"}],
            "leader-epoch": None,
            "offset": 10,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC),
            "timestamp-type": "CreateTime",
        }
    ]


def test_row_numbers_grow_with_messages_and_their_rows() -> None:
    options = {"format": "debezium-json"}
    messages = [
        (None, b'{"op":"c","after":{"a":1}}'),
        (None, None),
        (None, b'{"op":"u","before":{"a":1},"after":{"a":2}}'),
    ]
    rows = read({"a": t.INT}, options, messages, sequence=True)
    assert [(r[KIND_COLUMN], r["a"], r[SEQUENCE_COLUMN]) for r in rows] == [
        ("+I", 1, 5 << 16),
        ("-U", 1, 7 << 16),
        ("+U", 2, (7 << 16) + 1),
    ]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ((b'{"k":1}', b'{"a":"x"}'), "value of topic 't', partition 3, offset 11"),
        ((b'{"k":"x"}', b'{"a":1}'), "key of topic 't', partition 3, offset 11"),
    ],
)
def test_a_message_that_does_not_fit_is_named(bad: tuple[bytes | None, bytes | None], what: str) -> None:
    options = {
        "key.format": "json",
        "key.fields": "k",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
    }
    with pytest.raises(ConnectorError, match=what):
        read({"k": t.INT, "a": t.INT}, options, [(b'{"k":1}', b'{"a":1}'), bad])


def test_avro_is_read_as_key_and_value() -> None:
    """Unions with null of an int and a text, as Flink derives them."""
    options = {"key.format": "avro", "key.fields": "k", "value.format": "avro"}
    columns = {"k": t.INT, "s": t.STRING}
    rest = {**options, "value.fields-include": "EXCEPT_KEY"}
    assert read(columns, rest, [(b"\2\4", b"\2\2x"), (b"\0", b"\0"), (b"\2\4", None)]) == [
        {"k": 2, "s": "x"},
        {"k": None, "s": None},
    ]
    with pytest.raises(ConnectorError, match=r"fields \(k, s\).*value of topic 't', partition 3, offset 11"):
        read(columns, options, [(b"\0", b"\2\2\2\2x"), (b"\0", b"\2\2\2\6x")])
