"""Protobuf through all layers: from a query to a topic of Kafka, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.message_factory import GetMessageClass

from tests.connectors.kafka import BOUNDED, Broker
from tests.connectors.protobuf import descriptors
from tests.runtime.running import Session, folded
from tidemill.connectors.formats.protobuf.descriptors import MessageType
from tidemill.errors import ConnectorError

ROWS = "VALUES ('a', 1, ARRAY[1, 2], MAP['x', 1]), (NULL, NULL, NULL, NULL)"
"""The second is a message of no bytes."""


@pytest.mark.thorough
def test_from_a_query_to_a_topic_and_back(kafka: Broker, spark: object, tmp_path: Path) -> None:
    data = descriptors("proto3").SerializeToString()
    (tmp_path / "all.binpb").write_bytes(data)
    topic = kafka.topic(1)
    options = {
        "topic": topic,
        "format": "protobuf",
        "protobuf.message-class-name": "test.All",
        "protobuf.descriptor-file": f"{tmp_path}/all.binpb",
        "sink.staging-path": f"{tmp_path}/staging",
        **BOUNDED,
    }
    columns = "text STRING, i32 INT, numbers ARRAY<BIGINT>, counts MAP<STRING, INT>"
    table = kafka.ddl("messages", columns, options)
    session = Session({"execution.checkpointing.dir": f"{tmp_path}/checkpoint"})
    session.execute(table, f"INSERT INTO messages {ROWS}")
    kind = GetMessageClass(MessageType.of(data, "test.All").descriptor())
    first = kind(text="a", i32=1, numbers=[1, 2], counts={"x": 1})
    assert {message.value() for message in kafka.messages(topic)} == {b"", first.SerializeToString()}
    query = "SELECT text, i32, CARDINALITY(numbers), counts['x'] FROM messages"
    assert folded(session.changes(query)) == {("a", 1, 2, 1): 1, ("", 0, None, None): 1}
    kafka.produce(topic, [(None, "\n\x7f")])  # a text that is cut off
    with pytest.raises(ConnectorError, match=rf"test\.All.*topic '{topic}', partition 0, offset \d+"):
        session.changes(query)
