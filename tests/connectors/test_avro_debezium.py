"""Debezium's envelopes in Avro, as Flink 2.3 writes and reads them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.connectors.schema_registry import Registry, schema_registry
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import DecodeRequest, EncodeRequest, RecordError, TextEncoder
from tidemill.connectors.formats.registry import find_format
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

COLUMNS = (Field("a", t.INT), Field("s", t.STRING))
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "s", "type": ["null", "string"]}, {"name": "a", "type": "int"}],
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": {"type": "map", "values": ["int", "string"]}},
        {"name": "op", "type": "string"},
    ],
}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with schema_registry() as started:
        yield started


def options(registry: Registry) -> dict[str, str]:
    return {
        "debezium-avro-confluent.url": registry.url,
        "debezium-avro-confluent.subject": "dbz-value",
    }


def envelope(registry: Registry, op: str, before: Any = None, after: Any = None) -> bytes:
    stream = io.BytesIO()
    record: Mapping[str, Any] = {"before": before, "after": after, "source": {"db": "x", "n": 1}, "op": op}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(SCHEMA), record)
    return b"\0" + registry.add(SCHEMA).to_bytes(4, "big") + stream.getvalue()


def decode(
    registry: Registry, messages: Sequence[bytes | None], wanted: tuple[Field, ...] = COLUMNS
) -> tuple[list[tuple[Any, ...]], list[int]]:
    request = DecodeRequest(
        columns=COLUMNS, wanted=wanted, metadata=(), options=options(registry), time_zone="UTC"
    )
    found = find_format("debezium-avro-confluent").message_decoder(request).decode(messages)
    rows = [(RowKind(r.pop(KIND_COLUMN)).short, *r.values()) for r in found.table.to_pylist()]
    return rows, found.messages.tolist()


def test_images_are_changes(registry: Registry) -> None:
    one, two = {"a": 1, "s": "x"}, {"a": 1, "s": None}
    messages = [
        envelope(registry, "r", after=one),
        None,
        b"",
        envelope(registry, "u", before=one, after=two),
        envelope(registry, "d", before=two),
        envelope(registry, "c", after=one),
    ]
    assert decode(registry, messages) == (
        [("+I", 1, "x"), ("-U", 1, "x"), ("+U", 1, None), ("-D", 1, None), ("+I", 1, "x")],
        [0, 3, 3, 4, 5],
    )
    assert decode(registry, messages[3:], ()) == ([("-U",), ("+U",), ("-D",), ("+I",)], [0, 0, 1, 2])
    assert decode(registry, [None]) == ([], [])


def test_an_envelope_that_does_not_fit_is_named(registry: Registry) -> None:
    good = envelope(registry, "c", after={"a": 1, "s": "x"})
    for bad, error in (
        (envelope(registry, "u", after={"a": 1, "s": None}), "REPLICA IDENTITY to FULL"),
        (envelope(registry, "d"), 'The "before" field of DELETE message is null'),
        (envelope(registry, "c"), 'The "after" field of INSERT message is null'),
        (envelope(registry, "x", after={"a": 1, "s": "x"}), '"op" is none of c, r, u, d'),
    ):
        with pytest.raises(RecordError, match=error) as found:
            decode(registry, [None, good, bad])
        assert found.value.line == 2


def test_changes_have_flink_s_bytes(registry: Registry) -> None:
    """Recorded from Flink 2.3 with its Kafka connector, but for the schema's id."""
    request = EncodeRequest(fields=COLUMNS, changelog=True, options=options(registry), time_zone="UTC")
    encoder = find_format("debezium-avro-confluent").encoder(request)
    assert isinstance(encoder, TextEncoder)
    kinds = [RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE]
    schema = arrow_schema(COLUMNS).append(pa.field(KIND_COLUMN, pa.int8()))
    table = pa.table([[1, 1, 1, None], ["1", "1", "2", None], [int(k) for k in kinds]], schema=schema)
    assert [message.hex() for message in encoder.texts(table).to_pylist()] == [
        "00000000010200020202020231020263",
        "00000000010202020202023100020264",
        "00000000010200020202020232020263",
        "000000000102020000" + "00020264",
    ]
    columns = [
        f'{{"name":"{n}","type":["null","{k}"],"default":null}}' for n, k in (("a", "int"), ("s", "string"))
    ]
    image = f'"fields":[{",".join(columns)}]'
    assert registry.schemas[registry.subjects["dbz-value"][0]] == (
        '["null",{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated","fields":['
        f'{{"name":"before","type":["null",{{"type":"record","name":"record_before",{image}}}],"default":null}},'
        f'{{"name":"after","type":["null",{{"type":"record","name":"record_after",{image}}}],"default":null}},'
        '{"name":"op","type":["null","string"],"default":null}]}]'
    )
