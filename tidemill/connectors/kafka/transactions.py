"""Exactly once: an epoch's messages of all sinks of a job on one cluster are one transaction.

The transaction also commits an offset of a consumer group of the job's own: the number of the epoch. So what
Kafka has of the epoch and what it says it has are one: whoever starts the job again asks for that number,
and sends the staged messages of an epoch that is not there. ``docs/decisions/089`` argues every crash point.

1. ``init_transactions``: ends what an earlier process left open, and fences that process.
2. Ask for the recorded epoch; if it is this one or a later one, all is done.
3. Begin, send, record the epoch, commit.
4. If anything fails: from 1 with a new producer, until a minute has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import TIMEOUT, KafkaCluster
from tidemill.connectors.kafka.failures import failure
from tidemill.connectors.kafka.sending import PATIENCE, Record, Sending, partitions, producer
from tidemill.errors import CommitUnknownError, ConnectorError, StateError
from tidemill.files.storage import Storage

Found = TypeVar("Found")
_PAUSE = 0.2
_TIMEOUT_MS = 300_000
"""After which the broker aborts a transaction whose process has gone; its messages are still staged."""
_OF_DATA = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError._AUTHENTICATION,
    }
)
"""Trying again does not help."""


@dataclass(slots=True, kw_only=True)
class Transactions:
    """``name``: of the transactional id and the consumer group, stable over restarts of the job; the epoch is
    the offset of the first partition of ``topic``. ``note``: a file in ``storage`` that is there if some
    epoch was recorded: Kafka forgets such offsets after days."""

    given: properties.Properties
    name: str
    topic: str
    storage: Storage
    note: str
    _client: Producer | None = field(default=None, repr=False)
    _group: Consumer | None = field(default=None, repr=False)
    _counts: dict[str, int] = field(default_factory=dict)
    _committing: bool = False

    def check(self, topic: str) -> None:
        client = producer(self.given, {})
        self._counts[topic] = partitions(client, topic, self._servers)

    def recover(self, epoch: int) -> None:
        recorded = self._patiently(self._recovered, epoch)
        if recorded >= epoch:
            raise StateError(
                f"Topic '{self.topic}' has the job's epochs up to {recorded}, but the checkpoint"
                f" has none after {epoch - 1}: it is older than the topic.",
                hint="Another 'sink.transactional-id-prefix' writes these epochs again.",
            )

    def send(self, epoch: int, topics: Sequence[str], records: Callable[[], Iterable[Record]]) -> None:
        for topic in topics:
            if topic not in self._counts:
                self.check(topic)
        self._patiently(lambda: self._attempt(epoch, records), epoch)

    def _patiently(self, attempt: Callable[[], Found], epoch: int) -> Found:
        """Tries again while that may help."""
        deadline, unknown = time.monotonic() + PATIENCE, False
        while True:
            self._committing = False
            try:
                return attempt()
            except KafkaException as e:
                unknown = unknown or self._committing
                self._client = None  # step 4: the next one ends what this one has open
                if e.args[0].code() in _OF_DATA:
                    raise self._failed(e) from None
                if time.monotonic() > deadline:
                    raise self._given_up(e, epoch) if unknown else self._failed(e) from None
                time.sleep(_PAUSE)

    def _recovered(self) -> int:
        self._producer()
        return self.recorded()

    def close(self) -> None:
        self._client, group, self._group = None, self._group, None
        if group is not None:
            group.close()

    def recorded(self) -> int:
        """The last epoch that the cluster has; 0 for none."""
        (found,) = self._consumer().committed([TopicPartition(self.topic, 0)], TIMEOUT)
        if found.error is not None:
            raise KafkaException(found.error)
        return max(int(found.offset), 0)

    def _attempt(self, epoch: int, records: Callable[[], Iterable[Record]]) -> None:
        client = self._producer()  # step 1
        recorded = self.recorded()  # step 2
        if recorded >= epoch:
            return
        if not recorded and self.storage.stat(self.note) is not None:
            raise self._forgotten(epoch)
        client.begin_transaction()  # step 3
        sending = Sending(client=client, counts=self._counts)
        sending.all(records())
        said = [TopicPartition(self.topic, 0, epoch)]
        client.send_offsets_to_transaction(said, self._consumer().consumer_group_metadata(), TIMEOUT)
        self._committing = True
        client.commit_transaction(TIMEOUT)
        if not recorded:
            self.storage.publish(self.note, lambda stream: stream.write(b""))

    def _producer(self) -> Producer:
        """One that has fenced all earlier ones, and whose broker has ended what they had left open."""
        if self._client is None:
            timeout = self.given.get("transaction.timeout.ms", str(_TIMEOUT_MS))
            more = {"transactional.id": self.name, "transaction.timeout.ms": timeout}
            client = producer(self.given, more)
            client.init_transactions(TIMEOUT)
            self._client = client
        return self._client

    def _consumer(self) -> Consumer:
        if self._group is None:
            more = {"group.id": self.name, "enable.auto.commit": False, "isolation.level": "read_committed"}
            self._group = KafkaCluster(given=self.given).consumer(more)
        return self._group

    @property
    def _servers(self) -> str:
        return self.given["bootstrap.servers"]

    def _failed(self, error: KafkaException) -> ConnectorError:
        return failure(error, f"Kafka at {self._servers}, transactional id '{self.name}'")

    def _forgotten(self, epoch: int) -> CommitUnknownError:
        return CommitUnknownError(
            f"Kafka at {self._servers} does not remember what consumer group '{self.name}' has recorded:"
            f" whether topic '{self.topic}' has epoch {epoch} is not known.",
            hint="Kafka keeps such offsets for offsets.retention.minutes. Look into the topic. If the epoch's"
            f" rows are not in it, remove the file {self.storage.shown(self.note)} and start the job again.",
        )

    def _given_up(self, error: KafkaException, epoch: int) -> CommitUnknownError:
        return CommitUnknownError(
            f"{self._failed(error).message}. It went away during the commit: whether it has epoch {epoch} is"
            " not known.",
            hint="Start the job again once the cluster is back: it finds out; nothing is lost or doubled.",
        )
