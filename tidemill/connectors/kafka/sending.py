"""Sends messages to topics from the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import TIMEOUT, quiet
from tidemill.connectors.kafka.failures import Login, refused_property, told
from tidemill.errors import ConnectorError

Headers = list[tuple[str, bytes | None]]
Record = tuple[str, bytes | None, bytes | None, int | None, int | None, Headers | None]
"""Topic, key, value; a number that makes the partition, None where the key does; timestamp in ms, headers."""
Records = Callable[[], Iterable[Record]]
"""An epoch's messages, each time again."""
NOTHING: Mapping[int, Records] = MappingProxyType({})
PATIENCE = 60.0
"""Seconds for which a cluster that is down is tried again."""
_PAUSE = 0.2
_CREATION_SECONDS = 5.0
_BEING_MADE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
"""What is said of a topic that a broker makes because it was asked for."""
_QUEUE = 100_000
_BY_KEY = -1


class Outbox(Protocol):
    """How a job's messages go to one cluster."""

    def check(self, topic: str) -> None:
        """ConnectorError where the topic is not there, and is not made by being asked for."""
        ...

    def recover(self, epoch: int) -> int:
        """What an earlier process of the job left open is ended; ``epoch`` is the next to be committed.
        StateError where the cluster has it already. Gives the last epoch that is known to be in the
        cluster, 0 if none is."""
        ...

    def send(
        self,
        epoch: int,
        topics: Sequence[str],
        records: Records,
        before: Mapping[int, Records] = NOTHING,
    ) -> int:
        """Idempotent as far as the guarantee says. ``before``: earlier epochs in their order; they were sent,
        and those that the cluster does not have are sent again. Gives the last epoch that is known to be in
        the cluster; this one itself may be shown later than its commit is acknowledged."""
        ...

    def close(self) -> None: ...


def producer(given: properties.Properties, more: Mapping[str, Any]) -> Producer:
    """With Java's way of choosing partitions by key."""
    defaults = {"partitioner": "murmur2_random", "queue.buffering.max.messages": _QUEUE, "linger.ms": 5}
    try:
        return Producer({**defaults, **quiet(properties.producer(given)), **more})
    except KafkaException as e:
        raise refused_property(e) from None


def partitions(client: Producer, login: Login, topic: str, servers: str) -> int:
    """How many the topic has; a broker may make it now."""
    deadline = time.monotonic() + _CREATION_SECONDS
    while True:
        try:
            found = client.list_topics(topic, timeout=TIMEOUT).topics[topic]
        except KafkaException as e:
            client.poll(0)
            raise login.failure(e, f"Kafka at {servers}") from None
        if found.error is None:
            return len(found.partitions)
        code = found.error.code()
        if code not in _BEING_MADE:
            raise told(found.error, f"Kafka at {servers}, topic '{topic}'")
        if time.monotonic() > deadline:
            raise ConnectorError(f"Kafka at {servers} has no topic '{topic}', and does not make it.")
        time.sleep(_PAUSE)


@dataclass(slots=True, kw_only=True)
class Sending:
    """Hands messages to a producer; ``counts``: partitions by topic. The first refused one is kept."""

    client: Producer
    counts: Mapping[str, int]
    refused: list[tuple[KafkaError, str]] = field(default_factory=list)

    def all(self, records: Iterable[Record]) -> None:
        for topic, key, value, turn, millis, headers in records:
            partition = _BY_KEY if turn is None else turn % self.counts[topic]
            while True:
                try:
                    self.client.produce(
                        topic,
                        value,
                        key,
                        partition,
                        on_delivery=self._delivered,
                        timestamp=millis or 0,
                        headers=headers,
                    )
                    break
                except BufferError:
                    self.client.poll(0.1)
            if self.refused:
                break
        self.check()

    def check(self) -> None:
        """KafkaException for a message that was refused."""
        self.client.poll(0)
        if self.refused:
            raise KafkaException(self.refused[0][0])

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and not self.refused:
            self.refused.append((error, message.topic() or ""))


@dataclass(slots=True, kw_only=True)
class Plain:
    """At least once: an epoch whose publication was cut off by a crash is sent again."""

    given: properties.Properties
    _login: Login = field(default_factory=Login)
    _client: Producer | None = field(default=None, repr=False)
    _counts: dict[str, int] = field(default_factory=dict)

    def check(self, topic: str) -> None:
        self._counts[topic] = partitions(self._producer(), self._login, topic, self._servers)

    def recover(self, epoch: int) -> int:
        """Nothing is left open, and nothing is known."""
        return 0

    def send(
        self,
        epoch: int,
        topics: Sequence[str],
        records: Records,
        before: Mapping[int, Records] = NOTHING,
    ) -> int:
        """What was sent ``before`` is there: it was acknowledged message by message."""
        for topic in topics:
            if topic not in self._counts:
                self.check(topic)
        sending = Sending(client=self._producer(), counts=self._counts)
        self._login.forget()
        try:
            sending.all(records())
            left = sending.client.flush(PATIENCE)
            sending.check()
        except KafkaException as e:
            self._client = None
            raise self._login.failure(e, f"Kafka at {self._servers}, epoch {epoch}") from None
        if left:
            self._client = None
            said = f"Kafka at {self._servers} has not taken {left} messages of epoch {epoch}"
            if self._login.refused is not None:
                raise told(self._login.refused, said)
            raise ConnectorError(f"{said}.")
        return epoch

    def close(self) -> None:
        self._client = None

    @property
    def _servers(self) -> str:
        return self.given["bootstrap.servers"]

    def _producer(self) -> Producer:
        if self._client is None:
            more = {"enable.idempotence": _idempotent(self.given), "error_cb": self._login}
            self._client = producer(self.given, more)
        return self._client


def _idempotent(given: properties.Properties) -> bool:
    """As Kafka's Java client: if nothing is said, unless other properties rule it out."""
    said = given.get("enable.idempotence")
    if said is not None:
        return said.lower() == "true"
    in_flight = given.get("max.in.flight.requests.per.connection", "1")
    waits = given.get("acks", "all") in ("all", "-1")
    return waits and given.get("retries") != "0" and in_flight in ("1", "2", "3", "4", "5")
