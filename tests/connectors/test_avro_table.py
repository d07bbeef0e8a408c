"""Avro through all layers: from a file to a table by key with a schema registry, and back."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.connectors.kafka import LATEST, Broker
from tests.connectors.schema_registry import schema_registry
from tests.runtime.running import Session, folded

ROWS = "VALUES ('a', 1, TIMESTAMP '2020-01-01 00:00:00.123'), ('b', 2, NULL), ('a', 3, NULL)"


@pytest.mark.thorough
def test_from_files_to_a_topic_by_key(kafka: Broker, spark: object, tmp_path: Path) -> None:
    columns = "k STRING, n INT, ts TIMESTAMP(3)"
    place = f"'connector' = 'filesystem', 'path' = '{tmp_path}/f', 'format' = 'avro'"
    files = f"CREATE TABLE files ({columns}) WITH ({place})"
    topic = kafka.topic(2)
    with schema_registry() as registry:
        options = {
            "connector": "upsert-kafka",
            "topic": topic,
            "key.format": "avro-confluent",
            "key.avro-confluent.url": registry.url,
            "value.format": "avro-confluent",
            "value.avro-confluent.url": registry.url,
            "sink.staging-path": f"{tmp_path}/staging",
            **LATEST,
        }
        table = kafka.ddl("latest", f"{columns}, PRIMARY KEY (k) NOT ENFORCED", options)
        session = Session({"execution.checkpointing.dir": f"{tmp_path}/checkpoint"})
        session.execute(files, table, f"INSERT INTO files {ROWS}")
        session.execute("INSERT INTO latest SELECT k, SUM(n), MAX(ts) FROM files GROUP BY k")
        expected = {("a", 4, datetime(2020, 1, 1, 0, 0, 0, 123_000)), ("b", 2, None)}
        assert folded(session.changes("SELECT * FROM latest")) == dict.fromkeys(expected, 1)
        assert set(registry.subjects) == {f"{topic}-key", f"{topic}-value"}
        assert json.loads(registry.schemas[1])["fields"][0] == {"name": "k", "type": "string"}
