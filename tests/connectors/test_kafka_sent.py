"""What a sink sends to Kafka: keys, values, tombstones and partitions, against a real broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.connectors.kafka import Broker
from tests.connectors.sinks import sink
from tests.connectors.sources import table
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, UPSERT, RowKind
from tidemill.connectors.kafka.rows import METADATA
from tidemill.connectors.kafka.sink import KafkaSink
from tidemill.types import logical as t

pytestmark = pytest.mark.thorough


def sent(
    broker: Broker, declared: CatalogTable, batches: Sequence[pa.RecordBatch], kinds: frozenset[RowKind]
) -> None:
    """Each batch is a task's."""
    target = sink(declared, kinds=kinds)
    assert isinstance(target, KafkaSink)
    stager = target.stager(1)
    tokens = [told.column(0)[0].as_py() for batch in batches for told in stager([batch])]
    target.publish(1, tokens)
    target.finish()


def rows(kinds: Sequence[RowKind] | None = None, **columns: Sequence[object]) -> pa.RecordBatch:
    arrays = {name: pa.array(values) for name, values in columns.items()}
    if kinds is not None:
        arrays[KIND_COLUMN] = pa.array([int(k) for k in kinds], pa.int8())
    return pa.RecordBatch.from_pydict(arrays)


@pytest.mark.parametrize("maps", [True, False])
def test_a_sink_writes_key_value_timestamp_and_headers(kafka: Broker, tmp_path: Path, maps: bool) -> None:
    topic = kafka.topic()
    options = {
        "topic": topic,
        "key.format": "csv",
        "key.fields": "a;b",
        "value.format": "json",
        "sink.staging-path": str(tmp_path),
    }
    columns = {"a": t.BIGINT, "b": t.STRING}
    metadata = {"timestamp": METADATA["timestamp"], "headers": METADATA["headers"]}
    declared = table(columns, kafka.options(options), metadata=metadata)
    headers = pa.array([[("q", b"1")], None], pa.map_(pa.string(), pa.binary()))
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1, 2]),
            pa.array(["x", None]),
            pa.array([1600000000123000, None], pa.timestamp("us", tz="UTC")),
            headers if maps else pa.array([[{"key": "q", "value": b"1"}], None]),
        ],
        names=["a", "b", "timestamp", "headers"],
    )
    sent(kafka, declared, [batch], INSERT_ONLY)
    first, second = kafka.messages(topic)
    assert (first.key(), first.value()) == (b"1,x", b'{"a":1,"b":"x"}')
    assert (first.timestamp()[1], first.headers()) == (1600000000123, [("q", b"1")])
    assert (second.key(), second.value(), second.headers()) == (b"2,", b'{"a":2,"b":null}', None)


def test_an_upsert_sink_writes_the_last_of_each_key_and_tombstones(kafka: Broker, tmp_path: Path) -> None:
    """Key 1 goes from one task to another: its deletion must not come last."""
    topic = kafka.topic()
    options = {
        "connector": "upsert-kafka",
        "topic": topic,
        "key.format": "json",
        "value.format": "json",
        "value.fields-include": "EXCEPT_KEY",
        "sink.staging-path": str(tmp_path),
    }
    declared = replace(table({"k": t.BIGINT, "v": t.STRING}, kafka.options(options)), primary_key=("k",))
    new, after, gone = RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE
    batches = [
        rows([new], k=[1], v=["new"]),
        rows([gone, new, after, gone], k=[1, 2, 2, 3], v=["old", "a", "b", "c"]),
    ]
    sent(kafka, declared, batches, UPSERT)
    assert sorted(kafka.records(topic)[:2]) == [('{"k":1}', None), ('{"k":3}', None)]
    assert kafka.records(topic)[2:] == [('{"k":1}', '{"v":"new"}'), ('{"k":2}', '{"v":"b"}')]


@pytest.mark.parametrize(
    ("partitioner", "expected"),
    [("fixed", [["a", "b", "c"], ["d"]]), ("round-robin", [["a", "c"], ["b", "d"]])],
)
def test_partitioners(kafka: Broker, tmp_path: Path, partitioner: str, expected: list[list[str]]) -> None:
    topic = kafka.topic(2)
    options = {
        "topic": topic,
        "format": "raw",
        "sink.partitioner": partitioner,
        "sink.staging-path": str(tmp_path),
    }
    declared = table({"v": t.STRING}, kafka.options(options))
    sent(kafka, declared, [rows(v=["a", "b", "c"]), rows(v=["d"])], INSERT_ONLY)
    found: list[list[str]] = [[], []]
    for message in kafka.messages(topic):
        found[message.partition() or 0].append((message.value() or b"").decode())
    assert found == expected


def test_keys_go_to_the_partitions_of_java_s_client(kafka: Broker, tmp_path: Path) -> None:
    """Murmur2 of Kafka's own tests: 21 -> -973932308, foobar -> -790332482, of which Java takes 31 bits."""
    topic = kafka.topic(7)
    options = {
        "topic": topic,
        "key.format": "raw",
        "key.fields": "k",
        "value.format": "json",
        "sink.staging-path": str(tmp_path),
    }
    sent(kafka, table({"k": t.STRING}, kafka.options(options)), [rows(k=["21", "foobar"])], INSERT_ONLY)
    places = {m.key(): m.partition() for m in kafka.messages(topic)}
    assert places == {b"21": (-973932308 & 0x7FFFFFFF) % 7, b"foobar": (-790332482 & 0x7FFFFFFF) % 7}
