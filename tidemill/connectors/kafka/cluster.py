"""What the driver asks a Kafka cluster: its topics, and offsets of their partitions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.failures import Login, refused_property, told
from tidemill.connectors.kafka.offsets import Partition
from tidemill.errors import ConnectorError

Found = TypeVar("Found")
Asked = TypeVar("Asked")
TIMEOUT = 30.0
"""Seconds for an answer; librdkafka asks again where a broker is away for a while."""
_PAUSE = 0.2
_LOOK_SECONDS = 0.5
"""How often it is looked whether brokers refuse the login of a client that waits for an answer."""
_NOT_YET = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError._TRANSPORT,  # the connection was lost while the answer was on its way
    }
)
"""What a broker answers that has just started, or while partitions and groups move to another broker."""
_INTERNAL = "__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    id: str
    partitions: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class KafkaCluster:
    """``given``: the properties of a table. Connects at the first question."""

    given: properties.Properties
    login: Login = field(default_factory=Login)
    _admin: AdminClient | None = field(default=None, repr=False)

    @property
    def servers(self) -> str:
        return self.given["bootstrap.servers"]

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """ConnectorError where a topic is not there."""
        wanted = list(names)
        if not wanted:
            return {}
        found = self._answers(
            lambda: self.admin.describe_topics(TopicCollection(wanted), request_timeout=TIMEOUT),
            lambda name: f"topic '{name}'",
        )
        return {
            name: Topic(id=str(d.topic_id), partitions=tuple(p.id for p in d.partitions))
            for name, d in found.items()
        }

    def matching(self, pattern: str) -> list[str]:
        """Names of the topics that match ``pattern`` as a whole; Kafka's own are left out."""
        listed = self._ask(lambda: self.admin.list_topics(timeout=TIMEOUT))
        names = (name for name in listed.topics if not name.startswith(_INTERNAL))
        return sorted(name for name in names if re.fullmatch(pattern, name))

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """With 'isolation.level' = 'read_committed' the offset behind what is decided."""
        return self._offsets(dict.fromkeys(partitions, OffsetSpec.latest()))

    def at(self, partitions: Iterable[Partition], millis: int) -> dict[Partition, int]:
        """The first message at or after a time; the end where there is none."""
        wanted = list(partitions)
        found = self._offsets(dict.fromkeys(wanted, OffsetSpec.for_timestamp(millis)))
        late = [p for p in wanted if found[p] < 0]
        return {**found, **(self.latest(late) if late else {})}

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Of those partitions that the consumer group has an offset for."""
        asked = [TopicPartition(*p) for p in partitions]
        request = [ConsumerGroupTopicPartitions(group, asked)]
        found = self._answers(
            lambda: self.admin.list_consumer_group_offsets(request, request_timeout=TIMEOUT),
            lambda group: f"group '{group}'",
        )
        return {(p.topic, p.partition): p.offset for p in found[group].topic_partitions if p.offset >= 0}

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Tells a consumer group how far its topics were read; it is for people, so that failures do no
        harm."""
        asked = [TopicPartition(topic, p, offset) for (topic, p), offset in offsets.items()]
        self.admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, asked)])

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            try:
                settings = {"error_cb": self.login, **quiet(properties.admin(self.given))}
                self._admin = AdminClient(settings)
            except KafkaException as e:
                raise refused_property(e) from None
        return self._admin

    def consumer(self, more: Mapping[str, Any]) -> Consumer:
        try:
            return Consumer({"error_cb": self.login, **quiet(properties.consumer(self.given)), **more})
        except KafkaException as e:
            raise refused_property(e) from None

    def _offsets(self, specs: Mapping[Partition, Any]) -> dict[Partition, int]:
        if not specs:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED
            if self.given.get("isolation.level") == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        request = {TopicPartition(*p): spec for p, spec in specs.items()}
        found = self._answers(
            lambda: self.admin.list_offsets(request, isolation_level=level, request_timeout=TIMEOUT),
            lambda p: f"topic '{p.topic}', partition {p.partition}",
        )
        return {(p.topic, p.partition): result.offset for p, result in found.items()}

    def _answers(
        self, question: Callable[[], Mapping[Asked, Future[Any]]], named: Callable[[Asked], str]
    ) -> dict[Asked, Any]:
        """Asks again while the cluster says that it cannot answer yet: librdkafka hands such answers on."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            futures = self._ask(question)
            self._wait(futures)
            refused = {asked: e for asked, f in futures.items() if (e := f.exception()) is not None}
            if not refused:
                return {asked: f.result() for asked, f in futures.items()}
            for asked, error in refused.items():
                if not _passes(error) or time.monotonic() > deadline:
                    raise self._refused(error, named(asked))
            time.sleep(_PAUSE)

    def _wait(self, futures: Mapping[Asked, Future[Any]]) -> None:
        """ConnectorError if the brokers refuse the login meanwhile."""
        while wait(futures.values(), _LOOK_SECONDS).not_done:
            self.admin.poll(0)
            if self.login.refused is not None:
                raise told(self.login.refused, f"Kafka at {self.servers}")

    def _ask(self, question: Callable[[], Found]) -> Found:
        self.admin.poll(0)
        self.login.forget()
        try:
            return question()
        except KafkaException as e:
            self.admin.poll(0)
            raise self.login.failure(e, f"Kafka at {self.servers}") from None

    def _refused(self, error: BaseException, what: str) -> ConnectorError:
        if not isinstance(error, KafkaException):
            raise error
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return ConnectorError(f"Kafka at {self.servers} has no {what}.")
        return self.login.failure(error, f"Kafka at {self.servers}, {what}")


def _passes(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _NOT_YET


def quiet(made: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a client that writes nothing on standard error."""
    return {"log_level": 0, **made}
