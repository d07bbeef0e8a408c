"""Messages that name their schema in a registry: writers' schemas, damage, and what a registry refuses."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.certificates import certificate
from tests.connectors.schema_registry import Registry, schema_registry
from tests.connectors.sources import table
from tidemill.connectors.formats.api import DecodeRequest, EncodeRequest, RecordError, TextEncoder
from tidemill.connectors.formats.registry import find_format
from tidemill.connectors.registry import validate
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

Columns = Mapping[str, t.LogicalType]
AB: dict[str, t.LogicalType] = {"a": t.INT, "b": t.STRING}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with schema_registry() as started:
        yield started


def fields(columns: Columns) -> tuple[Field, ...]:
    return tuple(Field(name, kind) for name, kind in columns.items())


def options(registry: Registry, **more: str) -> dict[str, str]:
    plain = {"url": registry.url, "subject": "t-value"}
    return {f"avro-confluent.{key}": value for key, value in {**plain, **more}.items()}


def encode(columns: Columns, rows: list[dict[str, Any]], given: Mapping[str, str]) -> list[bytes]:
    request = EncodeRequest(fields=fields(columns), changelog=False, options=given, time_zone="UTC")
    encoder = find_format("avro-confluent").encoder(request)
    assert isinstance(encoder, TextEncoder)
    found: list[bytes] = encoder.texts(
        pa.Table.from_pylist(rows, schema=arrow_schema(fields(columns)))
    ).to_pylist()
    return found


def decode(
    columns: Columns, messages: list[bytes | None], given: Mapping[str, str], *wanted: str
) -> tuple[list[dict[str, Any]], list[int]]:
    request = DecodeRequest(
        columns=fields(columns),
        wanted=tuple(f for f in fields(columns) if not wanted or f.name in wanted),
        metadata=(),
        options=given,
        time_zone="UTC",
    )
    found = find_format("avro-confluent").message_decoder(request).decode(messages)
    return found.table.to_pylist(), found.messages.tolist()


def written(registry: Registry, row: dict[str, Any], **types: Any) -> bytes:
    """A message of another writer's."""
    schema = {
        "type": "record",
        "name": "other",
        "fields": [{"name": name, "type": kind} for name, kind in types.items()],
    }
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return b"\0" + registry.add(schema).to_bytes(4, "big") + stream.getvalue()


def test_a_sink_registers_its_schema_once(registry: Registry) -> None:
    given = options(registry)
    (first,) = encode(AB, [{"a": 1, "b": "x"}], given)
    (second,) = encode(AB, [{"a": None, "b": None}], given)
    assert (first, second) == (b"\0\0\0\0\1\2\2\2\2x", b"\0\0\0\0\1\0\0")
    assert registry.requests == ["POST /subjects/t-value/versions"]
    assert json.loads(registry.schemas[1])["namespace"] == "org.apache.flink.avro.generated"
    assert decode(AB, [first, second], given) == ([{"a": 1, "b": "x"}, {"a": None, "b": None}], [0, 1])
    decode(AB, [first], given)
    assert registry.requests[1:] == ["GET /schemas/ids/1"]


def test_each_message_is_read_by_its_writer_s_schema(registry: Registry) -> None:
    messages = [
        written(registry, {"b": "x", "a": 1}, b="string", a="int"),
        None,
        written(registry, {"a": 2, "more": [1.5]}, a="int", more={"type": "array", "items": "double"}),
        written(registry, {"b": "y", "a": 3}, b="string", a="int"),
        written(registry, {"b": "z"}, b="string"),
    ]
    rows, numbers = decode(AB, [*messages], options(registry))
    assert rows == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "y"}, {"a": None, "b": "z"}]
    assert numbers == [0, 2, 3, 4]
    assert decode(AB, [*messages], options(registry), "b")[0] == [
        {"b": "x"},
        {"b": None},
        {"b": "y"},
        {"b": "z"},
    ]
    with pytest.raises(RecordError, match="no field 'a', which is NOT NULL") as found:
        decode({"a": t.IntType(nullable=False)}, [*messages], options(registry))
    assert found.value.line == 4


def test_nothing_but_nulls_has_the_columns(registry: Registry) -> None:
    assert decode(AB, [None, None], options(registry)) == ([], [])


def test_a_message_that_does_not_fit_is_named(registry: Registry) -> None:
    good = written(registry, {"a": 1}, a="int")
    for bad, error in (
        (b'{"a":1}', "Magic number does not match: a message of 'avro-confluent' begins with a zero byte"),
        (b"", "Magic number does not match"),
        (b"\0\0\0\0\x63\2", "The schema registry has no schema with id 99"),
        (good[:-1], r"was not written with the schema of the fields \(a\)"),
        (written(registry, {"a": "x"}, a="string"), "'a'"),
    ):
        with pytest.raises(RecordError, match=error) as found:
            decode({"a": t.INT}, [good, None, bad], options(registry))
        assert found.value.line == 2


def test_a_registry_that_is_down_is_tried_again_and_then_named(registry: Registry) -> None:
    message = written(registry, {"a": 1}, a="int")
    registry.failures = 1
    two = options(registry, url=f"http://127.0.0.1:9,{registry.url}/")
    assert decode({"a": t.INT}, [message], two) == ([{"a": 1}], [0])
    registry.failures = 100
    with pytest.raises(ConnectorError, match=rf"cannot be reached: {registry.url}: HTTP 500"):
        decode({"a": t.INT}, [message], options(registry))


def test_user_and_password(registry: Registry) -> None:
    registry.user = "me:secret"
    message = written(registry, {"a": 1}, a="int")
    with pytest.raises(ConnectorError, match="refuses access to schema 1"):
        decode({"a": t.INT}, [message], options(registry))
    login = {"basic-auth.credentials-source": "USER_INFO", "basic-auth.user-info": "me:secret"}
    assert decode({"a": t.INT}, [message], options(registry, **login))[1] == [0]
    within = {"url": registry.url.replace("://", "://me:secret@"), "basic-auth.credentials-source": "URL"}
    assert decode({"a": t.INT}, [message], options(registry, **within))[1] == [0]
    registry.failures = 100
    wrong = {**within, "url": within["url"] + "/x"}
    with pytest.raises(ConnectorError) as found:
        decode({"a": t.INT}, [message], options(registry, **wrong))
    assert "secret" not in str(found.value)


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = certificate(tmp_path)
    with schema_registry(own) as registry:
        message = written(registry, {"a": 1}, a="int")
        with pytest.raises(ConnectorError, match=r"(?i)cannot be reached: https://.*certificate"):
            decode({"a": t.INT}, [message], options(registry))
        monkeypatch.setenv("SSL_CERT_FILE", own)
        assert decode({"a": t.INT}, [message], options(registry)) == ([{"a": 1}], [0])


def test_a_schema_that_the_registry_does_not_take_is_named(registry: Registry) -> None:
    registry.incompatible.add("t-value")
    with pytest.raises(ConnectorError, match=r"(?s)refuses the table's schema for subject 't-value'.*is new"):
        encode(AB, [{"a": 1, "b": "x"}], options(registry))
    own = options(registry, **{"auto.register.schemas": "false", "subject": "other"})
    with pytest.raises(ConnectorError, match="does not have the table's schema under subject 'other'"):
        encode(AB, [{"a": 1, "b": "x"}], own)


def test_a_given_schema_is_written(registry: Registry) -> None:
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    schema = {"type": "record", "name": "Mine", "fields": [{"name": "ts", "type": micros}]}
    given = options(registry, schema=json.dumps(schema))
    (message,) = encode({"ts": t.TimestampType(precision=3)}, [{"ts": 1_500_000}], given)
    assert fastavro.schemaless_reader(
        io.BytesIO(message[5:]), fastavro.parse_schema({**schema, "fields": [{"name": "ts", "type": "long"}]})
    ) == {"ts": 1_500_000}
    with pytest.raises(ValidationError, match=r"fields \[ts\] are not the table's columns \[a\]"):
        encode({"a": t.INT}, [{"a": 1}], given)


def test_the_subject_is_the_topic_s(registry: Registry) -> None:
    found = find_format("avro-confluent")
    key = "avro-confluent.subject"
    assert found.completed({}, "orders", "key")[key] == "orders-key"
    assert found.completed({key: "mine"}, "orders", "key")[key] == "mine"
    assert key not in found.completed({"avro-confluent.schema-registry.subject": "old"}, "orders", "value")


KAFKA = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "h:1",
    "format": "avro-confluent",
}


def test_options() -> None:
    url = {"avro-confluent.schema-registry.url": "http://h:1"}
    validate(table({"a": t.INT}, KAFKA | url), KAFKA | url, role="sink")
    for more, error in (
        ({}, "Missing required options are:\n\navro-confluent.url"),
        ({"avro-confluent.url": "file:///etc"}, "must be of http or https"),
        (url | {"avro-confluent.ssl.keystore.location": "k.jks"}, "Unsupported options"),
    ):
        with pytest.raises(ValidationError, match=error):
            validate(table({"a": t.INT}, KAFKA | more), KAFKA | more, role="source")
    files = {"connector": "filesystem", "path": "/tmp/x", "format": "avro-confluent", **url}
    with pytest.raises(NotSupportedError, match="which is a format of messages"):
        validate(table({"a": t.INT}, files), files, role="source")
