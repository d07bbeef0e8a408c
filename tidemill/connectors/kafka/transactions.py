"""Exactly once: an epoch's messages of all sinks of a job on one cluster are one transaction.

The transaction also commits an offset of a consumer group of the job's own: the number of the epoch. So what
Kafka has of the epoch and what it says it has are one: whoever starts the job again asks for that number,
and sends the staged messages of an epoch that is not there. ``docs/decisions/089`` argues every crash point.

1. ``init_transactions``: ends what an earlier process left open, and fences that process.
2. Ask for the recorded epoch; if it is this one or a later one, all is done.
3. Begin, send, record the epoch, commit; before it likewise each earlier epoch that was acknowledged, and
   is not there.
4. If anything fails: from 1 with new clients, until a minute has passed.

A producer that has lost a connection since its last transaction is replaced, too: librdkafka may wait for
ever for the coordinator of the group that it knew, whatever timeout it is given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import TIMEOUT, KafkaCluster
from tidemill.connectors.kafka.failures import Login
from tidemill.connectors.kafka.kept import note_of
from tidemill.connectors.kafka.sending import NOTHING, PATIENCE, Records, Sending, partitions, producer
from tidemill.errors import CommitUnknownError, ConnectorError, StateError
from tidemill.files.storage import Storage

Found = TypeVar("Found")
_PAUSE = 0.2
_ANSWER_SECONDS = 10.0
"""In which the group's coordinator answers, which takes milliseconds else: new clients find another one."""
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
    _login: Login = field(default_factory=Login)
    _lost: bool = False

    def check(self, topic: str) -> None:
        client = producer(self.given, {"error_cb": self._login})
        self._counts[topic] = partitions(client, self._login, topic, self._servers)

    def recover(self, epoch: int) -> int:
        recorded = self._patiently(self._recovered, epoch)
        if recorded >= epoch:
            raise StateError(
                f"Topic '{self.topic}' has the job's epochs up to {recorded}, but the checkpoint"
                f" has none after {epoch - 1}: it is older than the topic.",
                hint="Another 'sink.transactional-id-prefix' writes these epochs again.",
            )
        return recorded

    def known(self, epoch: int) -> int:
        """``recorded``, without fencing anybody."""
        return self._patiently(self.recorded, epoch)

    def send(
        self,
        epoch: int,
        topics: Sequence[str],
        records: Records,
        before: Mapping[int, Records] = NOTHING,
    ) -> int:
        for topic in topics:
            if topic not in self._counts:
                self.check(topic)
        return self._patiently(lambda: self._attempt({**before, epoch: records}), epoch)

    def _patiently(self, attempt: Callable[[], Found], epoch: int) -> Found:
        """Tries again while that may help."""
        deadline, unknown = time.monotonic() + PATIENCE, False
        while True:
            self._committing = False
            self._login.forget()
            try:
                return attempt()
            except KafkaException as e:
                unknown = unknown or self._committing
                self.close()  # step 4: the next producer ends what this one has open
                if e.args[0].code() in _OF_DATA:
                    raise self._failed(e) from None
                if self._login.refused is not None or time.monotonic() > deadline:
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
        (found,) = self._consumer().committed([TopicPartition(self.topic, 0)], _ANSWER_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        return max(int(found.offset), 0)

    def _attempt(self, epochs: Mapping[int, Records]) -> int:
        """The recorded epoch as it was found."""
        client = self._producer()  # step 1
        recorded = self.recorded()  # step 2
        missing = {epoch: records for epoch, records in epochs.items() if epoch > recorded}
        if missing and not recorded and self.storage.stat(self.note) is not None:
            raise self._forgotten(sorted(missing))
        for epoch, records in missing.items():  # step 3
            client.begin_transaction()
            sending = Sending(client=client, counts=self._counts)
            sending.all(records())
            self._record(client, epoch)
            self._committing = True
            client.commit_transaction(TIMEOUT)
            self._committing = False
        if missing and not recorded:
            self.storage.publish(self.note, lambda stream: stream.write(b""))
        return recorded

    def _record(self, client: Producer, epoch: int) -> None:
        """KafkaException if the broker does not take the epoch's number in time. The call, which may never
        return, is then left behind in its thread; the next producer fences its client."""
        said, group = [TopicPartition(self.topic, 0, epoch)], self._consumer().consumer_group_metadata()
        done: Future[None] = Future()

        def call() -> None:
            try:
                done.set_result(client.send_offsets_to_transaction(said, group, _ANSWER_SECONDS))
            except BaseException as e:
                done.set_exception(e)

        threading.Thread(target=call, name="tidemill-kafka-offsets", daemon=True).start()
        try:
            done.result(_ANSWER_SECONDS)
        except TimeoutError:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def _producer(self) -> Producer:
        """One that has fenced all earlier ones, and whose broker has ended what they had left open."""
        if self._client is not None:
            self._client.poll(0)  # tells of lost connections
        if self._client is None or self._lost:
            timeout = self.given.get("transaction.timeout.ms", str(_TIMEOUT_MS))
            self._lost = False
            more = {
                "transactional.id": self.name,
                "transaction.timeout.ms": timeout,
                "error_cb": self._disconnected,
            }
            client = producer(self.given, more)
            try:
                client.init_transactions(TIMEOUT)
            finally:
                client.poll(0)  # tells why it failed
            self._client = client
        return self._client

    def _disconnected(self, error: KafkaError) -> None:
        self._lost = True
        self._login(error)

    def _consumer(self) -> Consumer:
        if self._group is None:
            more = {"group.id": self.name, "enable.auto.commit": False, "isolation.level": "read_committed"}
            self._group = KafkaCluster(given=self.given).consumer(more)
        return self._group

    @property
    def _servers(self) -> str:
        return self.given["bootstrap.servers"]

    def _failed(self, error: KafkaException) -> ConnectorError:
        return self._login.failure(error, f"Kafka at {self._servers}, transactional id '{self.name}'")

    def _forgotten(self, epochs: Sequence[int]) -> CommitUnknownError:
        """``epochs``: in their order; all but the last one were sent before."""
        *before, last = epochs
        folder = self.note.rpartition("/")[0]
        notes = [self.storage.full_path(note_of(folder, epoch)) for epoch in before]
        shown = f" If the rows of epoch {', '.join(map(str, before))} are in it, remove {', '.join(notes)}."
        return CommitUnknownError(
            f"Kafka at {self._servers} does not remember what consumer group '{self.name}' has recorded:"
            f" whether topic '{self.topic}' has epoch {', '.join(map(str, epochs))} is not known.",
            hint="Kafka keeps such offsets for offsets.retention.minutes. Look into the topic."
            f"{shown if before else ''} If the rows of epoch {last} are not in it, remove the file"
            f" {self.storage.full_path(self.note)} and start the job again.",
        )

    def _given_up(self, error: KafkaException, epoch: int) -> CommitUnknownError:
        return CommitUnknownError(
            f"{self._failed(error).message}. It went away during the commit: whether it has epoch {epoch} is"
            " not known.",
            hint="Start the job again once the cluster is back: it finds out; nothing is lost or doubled.",
        )
