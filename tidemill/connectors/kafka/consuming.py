"""Messages by exact ranges of offsets, in a Spark Python worker.

A range gives the messages whose offsets lie in it, each time the same, wherever else the topic has grown by
then; offsets without a message (markers of transactions, aborted messages, what was compacted) give nothing.
A consumer stays in its worker for the next epoch, whose ranges it finds connected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.failures import Login, failure, told
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.errors import ConnectorError
from tidemill.last_used import LastUsed

_AHEAD = 100_000
"""Messages that librdkafka fetches before they are asked for."""
_BATCH = 5_000
"""Messages that are Python objects at a time: as many as fit into the processor's cache."""
_WAIT = 0.05
"""Seconds; what has come by then is handed on."""
_PATIENCE = 60.0
"""Seconds without any message, although there are some."""
_MOST = 8
_SETTINGS = {
    "group.id": "tidemill",  # librdkafka wants a name; offsets are assigned, and none are committed
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    "isolation.level": "read_uncommitted",
    # All messages are there when they are asked for: only the end of a range without a message waits.
    "fetch.wait.max.ms": 10,
    "queued.min.messages": _AHEAD,
    # Else a consumer that has so many waits a second before it asks for more, however soon they are taken.
    "fetch.queue.backoff.ms": 1,
}
_kept: LastUsed[list[tuple[Consumer, Login]]] = LastUsed(most=_MOST)
"""By properties, the consumers that no task of this worker uses now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeReader:
    """``given``: the properties of the table."""

    given: Mapping[str, str]

    def batches(self, part: KafkaRange) -> Iterator[list[Message]]:
        """In order. ConnectorError with topic, partition and offsets where messages are gone or do not
        come."""
        key = tuple(sorted(self.given.items()))
        free = _kept.get(key) or []
        kept = free.pop() if free else self._connected()
        yield from self._read(*kept, part)
        _kept.keep(key, [*free, kept])  # one whose task has failed, or has stopped early, goes

    def _connected(self) -> tuple[Consumer, Login]:
        isolation = {key: self.given[key] for key in ("isolation.level",) if key in self.given}
        cluster = KafkaCluster(given=dict(self.given))
        return cluster.consumer({**_SETTINGS, **isolation}), cluster.login

    def _read(self, consumer: Consumer, login: Login, part: KafkaRange) -> Iterator[list[Message]]:
        try:
            consumer.assign([TopicPartition(part.topic, part.partition, part.start)])
            position, deadline = part.start, time.monotonic() + _PATIENCE
            login.forget()
            while position < part.end:
                came = consumer.consume(min(_BATCH, part.end - position), _WAIT)
                errors = [m for m in came if m.error() is not None]
                messages = [m for m in came if m.error() is None] if errors else came
                last = messages[-1:]
                if last and last[0].offset() >= part.end:
                    messages = [m for m in messages if m.offset() < part.end]
                if messages:
                    yield messages
                reached = [_position(m, part) for m in (*last, *errors)]
                if reached:
                    position, deadline = max(position, *reached), time.monotonic() + _PATIENCE
                elif login.refused is not None:
                    raise told(login.refused, _place(part))
                elif time.monotonic() > deadline:
                    raise self._silent(part, position)
            consumer.unassign()
        except KafkaException as e:
            raise failure(e, _place(part)) from None

    def _silent(self, part: KafkaRange, position: int) -> ConnectorError:
        return ConnectorError(
            f"{_place(part)}: no message came for {_PATIENCE:.0f} s from offset {position} on;"
            f" the epoch reads up to offset {part.end}.",
            hint=f"Is the broker at {self.given['bootstrap.servers']} running?",
        )


def _position(message: Message, part: KafkaRange) -> int:
    """The offset that follows; 0 where an error is one that passes."""
    error, offset = message.error(), int(message.offset())
    if error is None:
        return offset + 1
    if error.code() == KafkaError._PARTITION_EOF:
        return offset
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise ConnectorError(
            f"{_place(part)}: the offsets {part.start} to {part.end} are to be read, but not all of them are"
            f" there any more ({error.str()}).",
            hint="The topic's retention has removed them.",
        )
    if error.retriable() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
        return 0
    raise told(error, _place(part))


def _place(part: KafkaRange) -> str:
    return f"Topic '{part.topic}', partition {part.partition}"
