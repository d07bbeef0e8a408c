"""Kafka against a real broker: what is read, what a ``read_committed`` reader sees, and what is refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.connectors.kafka import BOUNDED, EARLIEST, Broker
from tests.connectors.sources import source, table
from tests.runtime.running import Session, folded
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.consuming import RangeReader
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.connectors.kafka.sending import Record
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.connectors.kafka.transactions import Transactions
from tidemill.errors import CommitUnknownError, ConnectorError, StateError
from tidemill.files.storage import Storage
from tidemill.types import logical as t

pytestmark = pytest.mark.thorough


def kafka_source(broker: Broker, options: Mapping[str, str]) -> KafkaSource:
    made = source(table({"a": t.BIGINT}, broker.options(options)), streaming=True)
    assert isinstance(made, KafkaSource)
    return made


def test_partitions_have_watermarks_of_their_own(kafka: Broker, spark: object) -> None:
    """A partition that is far behind another one loses no rows, in epochs of any size; windows end when all
    partitions have come by their end."""
    topic = kafka.topic(2)
    for partition, start in ((0, 1000), (1, 0)):
        values = [json.dumps({"k": partition, "s": start + n}) for n in range(0, 100, 5)]
        kafka.produce(topic, [(None, v) for v in values], partition)
    columns = "k INT, s BIGINT, ts AS TO_TIMESTAMP_LTZ(s, 0), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
    query = (
        "SELECT k, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '50' SECOND))"
        " GROUP BY k, window_start, window_end"
    )
    answers = []
    for rows in ("0", "3"):
        session = Session({"tidemill.epoch.max-rows": rows, "table.local-time-zone": "UTC"})
        session.execute(kafka.ddl("t", columns, {"topic": topic, **BOUNDED}))
        changes = session.changes(query)
        answers.append(folded(changes))
    assert sorted((row[0], row[2]) for row in answers[0].elements()) == [(0, 10), (0, 10), (1, 10), (1, 10)]
    assert answers[0] == answers[1]


# -- reading, without Spark -----------------------------------------------------------------------


def offsets_of(parts: Iterable[list[Message]]) -> list[int]:
    return [m.offset() for part in parts for m in part]


def test_a_range_gives_its_messages_and_no_others(kafka: Broker) -> None:
    """Markers of transactions and messages of aborted ones have offsets, and are no rows."""
    topic = kafka.topic()
    kafka.produce(topic, [(None, str(n)) for n in range(5)])
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions()
    for ends in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for n in range(3):
            producer.produce(topic, str(n))
        producer.flush()
        ends()
    given = {"bootstrap.servers": kafka.servers, "isolation.level": "read_committed"}
    end = KafkaCluster(given=given).latest([(topic, 0)])[topic, 0]
    assert end == 13  # 5, 3 aborted and a marker, 3 committed and a marker
    reader = RangeReader(given=given)

    def read(start: int, end: int) -> list[int]:
        part = KafkaRange(topic=topic, partition=0, start=start, end=end, number=0)
        return offsets_of(reader.batches(part))

    assert read(0, end) == [0, 1, 2, 3, 4, 9, 10, 11]
    assert read(2, 4) == [2, 3]
    assert read(5, 9) == []
    assert read(2, 4) == [2, 3]
    all_of_them = RangeReader(given={"bootstrap.servers": kafka.servers})
    part = KafkaRange(topic=topic, partition=0, start=3, end=8, number=0)
    assert offsets_of(all_of_them.batches(part)) == [3, 4, 5, 6, 7]


def test_startup_and_bounded_modes(kafka: Broker) -> None:
    topic = kafka.topic(2)
    for n in range(6):
        kafka.produce(topic, [(None, "{}")], n % 2, timestamp=1000 * (n + 1))
    kafka.produce(topic, [(None, "{}")], 0, timestamp=9000)
    kafka.commit("g", topic, {0: 1, 1: 2})

    def of(start: str, end: str, more: Mapping[str, str] | None = None) -> dict[str, list[int]]:
        modes = {"scan.startup.mode": start, "scan.bounded.mode": end, "properties.group.id": "g"}
        made = kafka_source(kafka, {"topic": topic, **modes, **(more or {})})
        found: dict[str, list[int]] = made.next_offset(None, ReadLimit())["partitions"][topic]
        return found

    assert of("earliest-offset", "latest-offset") == {"0": [0, 4], "1": [0, 3]}
    assert of("latest-offset", "unbounded") == {"0": [4, 4], "1": [3, 3]}
    assert of("group-offsets", "latest-offset") == {"0": [1, 4], "1": [2, 3]}
    assert of("earliest-offset", "group-offsets") == {"0": [0, 1], "1": [0, 2]}
    stamps = {"scan.startup.timestamp-millis": "2500", "scan.bounded.timestamp-millis": "5500"}
    assert of("timestamp", "timestamp", stamps) == {"0": [1, 3], "1": [1, 2]}
    specific = {
        "scan.startup.specific-offsets": "partition:0,offset:2;partition:1,offset:1",
        "scan.bounded.specific-offsets": "partition:0,offset:3",
    }
    # The group says of partitions that are not named.
    assert of("specific-offsets", "specific-offsets", specific) == {"0": [2, 3], "1": [1, 2]}
    named = {"scan.startup.specific-offsets": "partition:0,offset:3"}
    assert of("specific-offsets", "latest-offset", named) == {"0": [3, 4], "1": [2, 3]}
    alone = {**named, "properties.group.id": "nobody"}
    assert of("specific-offsets", "latest-offset", alone) == {"0": [3, 4], "1": [0, 3]}


def test_offsets_that_are_gone_are_an_error_with_both_offsets(kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [(None, "{}")] * 5)
    options = {"topic": topic, **EARLIEST}
    made = kafka_source(kafka, options)
    start = made.next_offset(None, ReadLimit(rows=2))
    kafka.admin().delete_records([TopicPartition(topic, 0, 4)])[TopicPartition(topic, 0)].result()
    with pytest.raises(ConnectorError, match=rf"'{topic}', partition 0: offset 2 .* begins at offset 4"):
        made.next_offset(start, ReadLimit())
    reset = kafka_source(kafka, {**options, "properties.auto.offset.reset": "earliest"})
    assert reset.next_offset(start, ReadLimit())["partitions"][topic] == {"0": [4, 5]}
    part = KafkaRange(topic=topic, partition=0, start=2, end=5, number=0)
    with pytest.raises(ConnectorError, match=f"'{topic}', partition 0: the offsets 2 to 5"):
        offsets_of(RangeReader(given={"bootstrap.servers": kafka.servers}).batches(part))


def test_a_topic_that_was_made_anew_is_an_error(kafka: Broker) -> None:
    topic = kafka.topic()
    kafka.produce(topic, [(None, "{}")] * 3)
    made = kafka_source(kafka, {"topic": topic, **EARLIEST})
    start = made.next_offset(None, ReadLimit())
    kafka.admin().delete_topics([topic])[topic].result()
    deadline = time.monotonic() + 30
    while topic in kafka.admin().list_topics().topics:
        assert time.monotonic() < deadline
    kafka.topic(name=topic)
    kafka.produce(topic, [(None, "{}")] * 4)
    with pytest.raises(ConnectorError, match=r"created again.*up to offset 3 and now ends at 4"):
        made.next_offset(start, ReadLimit())


def test_a_topic_that_is_deleted_while_a_job_reads_it_is_an_error(
    kafka: Broker, spark: object, tmp_path: Path
) -> None:
    """After an epoch is committed. The job that goes on once the topic was made again is told, too."""
    topic = kafka.topic()
    kafka.produce(topic, [(None, '{"a": 1}')] * 3)

    def delete(step: str) -> None:
        if step == "published" and topic in kafka.admin().list_topics().topics:
            kafka.admin().delete_topics([topic])[topic].result()

    def run(fault: Callable[[str], None] = lambda _: None) -> None:
        session = Session({"execution.checkpointing.dir": str(tmp_path)}, fault)
        session.execute(
            kafka.ddl("t", "a INT", {"topic": topic, **EARLIEST}),
            "CREATE TABLE s (a INT) WITH ('connector' = 'blackhole')",
            "INSERT INTO s SELECT a FROM t",
        )

    with pytest.raises(ConnectorError, match=f"has no topic '{topic}'"):
        run(delete)
    kafka.topic(name=topic)
    kafka.produce(topic, [(None, '{"a": 2}')] * 5)
    with pytest.raises(ConnectorError, match=r"created again.*up to offset 3"):
        run()


def test_new_partitions_and_topics_of_a_pattern_are_found(kafka: Broker) -> None:
    first = kafka.topic(name="pattern-1")
    kafka.produce(first, [(None, "{}")] * 2)
    options = {
        "topic-pattern": "pattern-\\d",
        "scan.startup.mode": "latest-offset",
        "scan.topic-partition-discovery.interval": "1 ms",
    }
    made = kafka_source(kafka, options)
    start = made.next_offset(None, ReadLimit())
    second = kafka.topic(name="pattern-2")
    kafka.produce(second, [(None, "{}")] * 3)
    end = made.next_offset(start, ReadLimit())
    assert end["partitions"] == {first: {"0": [2, 2]}, second: {"0": [0, 3]}}


# -- exactly once, without Spark ------------------------------------------------------------------


def sending(broker: Broker, topic: str) -> Transactions:
    return Transactions(
        given={"bootstrap.servers": broker.servers},
        name=f"t-{topic}",
        topic=topic,
        storage=Storage(str(broker.directory)),
        note=f"notes/{topic}",
    )


def records(topic: str, values: Sequence[str]) -> list[Record]:
    return [(topic, None, value.encode(), None, None, None) for value in values]


class Killed(BaseException):
    """Stands for the death of the process."""


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_crash_around_the_commit_shows_an_epoch_once(
    kafka: Broker, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = kafka.topic(2), kafka.topic()
    first = sending(kafka, topic)
    sent = [*records(topic, ["a", "b", "c"]), *records(other, ["x"])]
    topics = [topic, other]
    first.send(1, topics, lambda: sent)

    class Dying:
        def __init__(self, settings: dict[str, object]) -> None:
            self.inner = Producer(settings)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def commit_transaction(self, seconds: float) -> None:
            self.inner.flush(30)
            if moment == "after the commit":
                self.inner.commit_transaction(seconds)
            raise Killed

    monkeypatch.setattr("tidemill.connectors.kafka.sending.Producer", Dying)
    second = sending(kafka, topic)
    with pytest.raises(Killed):
        second.send(2, topics, lambda: [*records(topic, ["d", "e"]), *records(other, ["y"])])
    monkeypatch.undo()
    shown = {v for _, v in kafka.records(topic)} | {v for _, v in kafka.records(other)}
    assert shown == ({*"abcdexy"} if moment == "after the commit" else {*"abcx"})
    third = sending(kafka, topic)
    third.send(2, topics, lambda: [*records(topic, ["d", "e"]), *records(other, ["y"])])
    assert sorted(v or "" for _, v in kafka.records(topic)) == [*"abcde"]
    assert sorted(v or "" for _, v in kafka.records(other)) == [*"xy"]


def test_a_process_that_was_thought_dead_commits_nothing(kafka: Broker) -> None:
    topic = kafka.topic()
    zombie = sending(kafka, topic)
    zombie.send(1, [topic], lambda: records(topic, ["a"]))

    def overtaken() -> list[Record]:
        """The next process publishes the epoch while this one is sending it."""
        if not done:
            done.append(True)
            sending(kafka, topic).send(2, [topic], lambda: records(topic, ["b"]))
        return records(topic, ["b"])

    done: list[bool] = []
    zombie.send(2, [topic], overtaken)
    assert kafka.records(topic) == [(None, "a"), (None, "b")]


def test_what_an_abandoned_process_left_open_ends_at_the_start(kafka: Broker) -> None:
    """An open transaction hides from ``read_committed`` readers what others wrote behind it."""
    topic = kafka.topic()
    abandoned = sending(kafka, topic)

    def dies() -> Iterable[Record]:
        yield from records(topic, ["lost"] * 10)
        raise Killed

    with pytest.raises(Killed):
        abandoned.send(1, [topic], dies)
    assert abandoned._client is not None
    abandoned._client.flush(30)
    kafka.produce(topic, [(None, "behind")])
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "x", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1) is None
    sending(kafka, topic).recover(1)
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"behind"
    consumer.close()


def test_a_message_that_is_too_large_is_told_and_nothing_of_its_epoch_shows(kafka: Broker) -> None:
    topic = kafka.topic(settings={"max.message.bytes": "1000"})
    target = sending(kafka, topic)
    with pytest.raises(ConnectorError, match=r"(?i)too large"):
        target.send(1, [topic], lambda: records(topic, ["small", "x" * 5000]))
    assert kafka.records(topic) == []
    target.send(1, [topic], lambda: records(topic, ["small"]))
    assert kafka.records(topic) == [(None, "small")]


def test_a_missing_topic_is_told(kafka: Broker) -> None:
    made = kafka_source(kafka, {"topic": "nowhere", **EARLIEST})
    with pytest.raises(ConnectorError, match="has no topic 'nowhere'"):
        made.next_offset(None, ReadLimit())


def test_a_checkpoint_that_is_older_than_the_topic_is_refused(kafka: Broker) -> None:
    """A job that goes back to a savepoint would take its next epochs for those that are written."""
    topic = kafka.topic()
    for epoch in (1, 2):
        sending(kafka, topic).send(epoch, [topic], lambda: records(topic, ["a"]))
    sending(kafka, topic).recover(3)
    with pytest.raises(StateError, match=f"'{topic}' has the job's epochs up to 2, .* none after 1"):
        sending(kafka, topic).recover(2)


def test_a_record_that_kafka_has_forgotten_is_not_taken_for_none(kafka: Broker) -> None:
    topic = kafka.topic()
    sending(kafka, topic).send(1, [topic], lambda: records(topic, ["a"]))
    kafka.admin().delete_consumer_groups([f"t-{topic}"])[f"t-{topic}"].result()
    with pytest.raises(CommitUnknownError, match=f"does not remember .*'t-{topic}'.* epoch 1"):
        sending(kafka, topic).send(1, [topic], lambda: records(topic, ["a"]))
    assert kafka.records(topic) == [(None, "a")]


def test_a_broker_that_dies_and_comes_back_has_each_epoch_once(kafka: Broker) -> None:
    """It is killed in the middle of sending."""
    topic = kafka.topic()
    target = sending(kafka, topic)
    kills = iter([True, False, False])

    def disturbed() -> Iterable[Record]:
        yield from records(topic, [str(n) for n in range(1000)])
        if next(kills):
            kafka.kill()
            kafka.start()
        yield from records(topic, ["last"])

    target.send(1, [topic], disturbed)
    target.send(2, [topic], lambda: records(topic, ["next"]))
    values = [v for _, v in kafka.records(topic)]
    assert values == [*map(str, range(1000)), "last", "next"]


@pytest.mark.timeout(300)
def test_a_broker_that_was_away_between_two_epochs_gets_the_next_one(kafka: Broker) -> None:
    """librdkafka's producer may wait for ever for the coordinator that it knew."""
    goes_on_after_a_kill(kafka, ended=True)


@pytest.mark.timeout(300)
def test_a_broker_that_dies_at_once_after_a_commit_gets_the_next_one_or_is_named(kafka: Broker) -> None:
    """A broker that is new to transactions may lose the markers of a commit that it acknowledged. Only an
    administrator can end such a transaction."""
    error = ""
    try:
        goes_on_after_a_kill(kafka, ended=False)
    except ConnectorError as e:
        error = e.message
    assert not error or f"Kafka at {kafka.servers}, transactional id 't-topic-" in error


def goes_on_after_a_kill(kafka: Broker, *, ended: bool) -> None:
    """``ended``: the kill comes after readers see the first epoch, otherwise right after its commit."""
    topic = kafka.topic()
    target = sending(kafka, topic)
    target.send(1, [topic], lambda: records(topic, ["a"]))
    if ended:
        assert target.recorded() == 1
    kafka.kill()
    kafka.start()
    target.send(2, [topic], lambda: records(topic, ["b"]))
    assert kafka.records(topic) == [(None, "a"), (None, "b")]


def test_a_producer_that_never_answers_is_replaced(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic()
    made: list[Silent] = []

    class Silent:
        """The first one does not return from ``send_offsets_to_transaction``."""

        def __init__(self, settings: dict[str, object]) -> None:
            self.inner = Producer(settings)
            self.answers = threading.Event()
            made.append(self)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def send_offsets_to_transaction(self, *asked: Any) -> None:
            if self is made[1]:
                self.answers.wait(60)
            self.inner.send_offsets_to_transaction(*asked)

    monkeypatch.setattr("tidemill.connectors.kafka.sending.Producer", Silent)
    monkeypatch.setattr("tidemill.connectors.kafka.transactions._ANSWER_SECONDS", 3.0)
    target = sending(kafka, topic)
    target.send(1, [topic], lambda: records(topic, ["a"]))
    made[1].answers.set()  # it goes on, and has been fenced
    target.send(2, [topic], lambda: records(topic, ["b"]))
    assert len(made) == 3
    assert kafka.records(topic) == [(None, "a"), (None, "b")]
