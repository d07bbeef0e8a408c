"""Which offsets an epoch of a Kafka table reads, and what is refused; without a broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.sources import table
from tidemill.connectors.api import ReadLimit, Splits
from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import KafkaCluster, Topic
from tidemill.connectors.kafka.offsets import KafkaRange, Partition, from_json, ranges
from tidemill.connectors.kafka.options import EARLIEST, LATEST, UNBOUNDED, Bound
from tidemill.connectors.kafka.reading import KafkaReader, tasks
from tidemill.connectors.kafka.sending import Plain, _idempotent
from tidemill.connectors.kafka.sharing import shared_out
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.connectors.registry import validate
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.types import logical as t


@dataclass
class Topics:
    """Stands for a cluster: first and last offsets by partition of the topic t, whose id is ``id``."""

    ends: dict[int, int]
    firsts: dict[int, int] = field(default_factory=dict)
    id: str = "one"
    told: list[dict[Partition, int]] = field(default_factory=list)

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        return {name: Topic(id=self.id, partitions=tuple(self.ends)) for name in names}

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self.firsts.get(p[1], 0) for p in partitions}

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self.ends[p[1]] for p in partitions}

    def commit(self, group: str, offsets: dict[Partition, int]) -> None:
        self.told.append(offsets)


def source(
    topics: Topics, *, bounded: str = UNBOUNDED, reset: str = "", start: str = EARLIEST
) -> KafkaSource:
    return KafkaSource(
        cluster=cast(KafkaCluster, topics),
        reader=cast(KafkaReader, None),
        names=("t",),
        pattern=None,
        group="g",
        startup=Bound(mode=start),
        bounded=Bound(mode=bounded),
        reset=reset,
        interval=1.0,
        parallelism=2,
    )


def read(made: KafkaSource, rows: int | None = None) -> list[list[tuple[int, int, int]]]:
    """Partition, start and end of each range, epoch by epoch, until nothing is left."""
    found, start = [], None
    while True:
        end = made.next_offset(start, ReadLimit(rows=rows))
        if start is not None and made.is_empty(start, end):
            return found
        found.append([(r.partition, r.start, r.end) for r in ranges(start, end)])
        start = end


def test_epochs_take_of_each_partition_in_proportion() -> None:
    assert read(source(Topics({0: 30, 1: 10, 2: 0})), rows=16) == [
        [(0, 0, 12), (1, 0, 4)],
        [(0, 12, 24), (1, 4, 8)],
        [(0, 24, 30), (1, 8, 10)],
    ]


@given(st.dictionaries(st.integers(0, 5), st.integers(1, 50), min_size=1), st.integers(1, 100))
def test_shares_are_all_there_may_be(left: dict[int, int], rows: int) -> None:
    shares = shared_out({("t", p): n for p, n in left.items()}, rows)
    assert sum(shares.values()) == min(rows, sum(left.values()))
    assert all(0 <= share <= left[p] for (_, p), share in shares.items())


@given(st.lists(st.integers(1, 60_000), max_size=6), st.integers(1, 5), st.booleans())
def test_tasks_have_all_ranges_in_order(sizes: list[int], parallelism: int, whole: bool) -> None:
    parts = [KafkaRange(topic="t", partition=n, start=7, end=7 + s, number=0) for n, s in enumerate(sizes)]
    made = tasks(parts, parallelism, whole=whole)
    joined: dict[int, tuple[int, int]] = {}
    for part in (part for task in made for part in task):
        begin, end = joined.get(part.partition, (part.start, part.start))
        assert end == part.start
        joined[part.partition] = (begin, part.end)
    assert joined == {part.partition: (part.start, part.end) for part in parts}
    if whole:
        assert sum(map(len, made)) == len(parts)
    assert len(made) <= parallelism + (len(parts) if whole else 1)


def test_rows_are_numbered_over_partitions_and_epochs() -> None:
    topics = Topics({0: 2, 1: 3})
    made = source(topics)
    first = made.next_offset(None, ReadLimit())
    topics.ends = {0: 4, 1: 3, 2: 5}
    second = made.next_offset(first, ReadLimit())
    assert [(r.partition, r.number) for r in ranges(None, first)] == [(0, 0), (1, 2)]
    assert [(r.partition, r.number) for r in ranges(first, second)] == [(0, 5), (2, 7)]
    assert made.splits(first, second) == Splits(("t-0", "t-1", "t-2"), ((5 << 16, "t-0"), (7 << 16, "t-2")))


def test_a_bounded_table_ends_where_it_ended_when_the_job_began() -> None:
    topics = Topics({0: 5})
    made = source(topics, bounded=LATEST)
    first = made.next_offset(None, ReadLimit(rows=3))
    assert not made.is_finished(first)
    topics.ends = {0: 9, 1: 4}
    last = made.next_offset(first, ReadLimit())
    assert from_json(last).nexts == {("t", 0): 5}
    assert made.is_finished(last)


@pytest.mark.parametrize(("start", "finished"), [(LATEST, True), (EARLIEST, False)])
def test_a_bounded_table_without_messages_is_finished(start: str, finished: bool) -> None:
    made = source(Topics({0: 3, 1: 0}), bounded=LATEST, start=start)
    assert not made.is_finished(None)
    made.next_offset(None, ReadLimit())
    assert made.is_finished(None) == finished


def test_a_table_begins_where_it_began_although_nothing_was_read() -> None:
    """Messages that come between two plans are not before the first one."""
    topics = Topics({0: 5})
    made = source(topics, start=LATEST)
    assert made.is_empty(None, made.next_offset(None, ReadLimit()))
    topics.ends[0] = 9
    end = made.next_offset(None, ReadLimit())
    assert [(r.start, r.end) for r in ranges(None, end)] == [(5, 9)]


def test_the_group_is_told_what_is_committed() -> None:
    topics = Topics({0: 5})
    made = source(topics)
    first = made.next_offset(None, ReadLimit(rows=2))
    assert topics.told == []
    made.next_offset(first, ReadLimit())
    made.next_offset(first, ReadLimit())
    assert topics.told == [{("t", 0): 2}]


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        (Topics({0: 9}, firsts={0: 4}), "partition 0: offset 3 .* begins at offset 4"),
        (Topics({0: 2}), "partition 0: offset 3 .* ends at offset 2"),
        (Topics({0: 9}, id="two"), "created again: .*up to offset 3 and now ends at 9"),
    ],
)
def test_what_was_not_read_and_is_gone_is_an_error(topics: Topics, said: str) -> None:
    start = source(Topics({0: 3})).next_offset(None, ReadLimit())
    with pytest.raises(ConnectorError, match=said):
        source(topics).next_offset(start, ReadLimit())


@pytest.mark.parametrize(("reset", "expected"), [("earliest", [(0, 4, 9)]), ("latest", [])])
def test_it_goes_on_where_it_is_told_to(reset: str, expected: list[tuple[int, int, int]]) -> None:
    start = source(Topics({0: 3})).next_offset(None, ReadLimit())
    end = source(Topics({0: 9}, firsts={0: 4}), reset=reset).next_offset(start, ReadLimit())
    assert [(r.partition, r.start, r.end) for r in ranges(start, end)] == expected


# -- options --------------------------------------------------------------------------------------

PLAIN = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "h:1", "format": "json"}
REFUSED: list[tuple[dict[str, str], type[Exception], str]] = [
    ({"connector": "upsert-kafka", "format": "json"}, ValidationError, "key.format"),
    ({"topic-pattern": "t.*"}, ValidationError, "'topic' and 'topic-pattern' shouldn't be set together"),
    ({"key.fields": "a"}, ValidationError, "only be declared if a key format is defined"),
    ({"key.format": "raw"}, ValidationError, "requires the declaration of one or more of key fields"),
    ({"key.format": "raw", "key.fields": "x"}, ValidationError, "Could not find the field 'x'"),
    (
        {"key.format": "raw", "key.fields": "a", "key.fields-prefix": "a"},
        ValidationError,
        "A key prefix is not allowed",
    ),
    ({"scan.startup.mode": "timestamp"}, ValidationError, "'scan.startup.timestamp-millis' is required"),
    (
        {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "0:1"},
        ValidationError,
        "should follow the format",
    ),
    ({"sink.partitioner": "org.Mine"}, NotSupportedError, "partitioners in Java"),
    ({"json.fail-on-missing-feild": "true"}, ValidationError, "Unsupported options"),
    ({"format": "protobuf"}, ValidationError, "protobuf.message-class-name"),
    ({"format": "parquet"}, ValidationError, "identifier 'parquet'"),
    ({"properties.plugin.library.paths": "x.so"}, NotSupportedError, "libraries and programs"),
    ({"properties.ssl.truststore.location": "x.jks"}, NotSupportedError, "JKS"),
]


@pytest.mark.parametrize(("more", "kind", "said"), REFUSED)
def test_options_that_do_not_fit(more: dict[str, str], kind: type[Exception], said: str) -> None:
    options = {**PLAIN, **more}
    with pytest.raises(kind, match=said):
        validate(table({"a": t.STRING, "b": t.INT}, options), options, role="source")


def test_java_s_properties_are_librdkafka_s() -> None:
    login = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"me\" password='it''s';"
    )
    given: dict[str, Any] = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": login.replace("''", ""),
        "max.poll.records": "7",
        "acks": "all",
    }
    assert properties.consumer(given) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "me",
        "sasl.password": "its",
    }
    assert properties.producer(given)["acks"] == "all"


@pytest.mark.parametrize(
    "more",
    [
        {"acks": "1"},
        {"acks": "all"},
        {"retries": "0"},
        {"max.in.flight.requests.per.connection": "7"},
        {"enable.idempotence": "false"},
    ],
)
def test_a_sink_without_transactions_takes_weaker_properties(more: dict[str, str]) -> None:
    """The client refuses an idempotent producer with some of them; Java's client makes a plain one."""
    Plain(given={"bootstrap.servers": "127.0.0.1:1", **more})._producer()


def test_a_sink_is_idempotent_unless_the_table_says_otherwise() -> None:
    """Idempotent producers refuse acks = 1, if they are asked for by name."""
    asked = {"bootstrap.servers": "127.0.0.1:1", "acks": "1", "enable.idempotence": "true"}
    with pytest.raises(ValidationError, match="acks"):
        Plain(given=asked)._producer()
    assert _idempotent({"bootstrap.servers": "h:1", "acks": "-1"})
