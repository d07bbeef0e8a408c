"""Transactions that nobody will end: they hide later messages from ``read_committed`` readers.

A broker keeps the state of each transactional id as the last message of the id in ``__transaction_state``,
which clients may read like any topic. Whoever calls ``init_transactions`` under an id ends what is open under
it: the broker aborts the transaction and fences its producer. A job of ours that still runs, or starts later,
sends the epoch again from its staged files.
"""

from __future__ import annotations

import struct

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tidemill.connectors.kafka import properties
from tidemill.connectors.kafka.cluster import TIMEOUT, KafkaCluster
from tidemill.connectors.kafka.failures import Login
from tidemill.connectors.kafka.sending import producer
from tidemill.errors import ConnectorError

_TOPIC = "__transaction_state"
_ID = struct.Struct(">hh")
"""How a key begins: its version, and the length of the transactional id behind it."""
_STATE = struct.Struct(">hqhib")
"""How a value begins, in its versions 0 and 1: version, producer id and epoch, timeout, state."""
_OF_STATES, _VALUES = 0, (0, 1)
_ONGOING = 1


def open_ids(given: properties.Properties, prefix: str) -> list[str]:
    """Transactional ids that begin with ``prefix`` and have an open transaction, sorted.

    ConnectorError if the cluster cannot be asked, or the user may not read its transactions.
    """
    more = {"group.id": _TOPIC, "enable.auto.commit": False, "enable.partition.eof": True}
    cluster = KafkaCluster(given=given)
    consumer = cluster.consumer(more)
    try:
        return sorted(name for name, state in _states(consumer, prefix).items() if state == _ONGOING)
    except KafkaException as e:
        consumer.poll(0)
        raise _unreadable(e, cluster) from None
    finally:
        consumer.close()


def end(given: properties.Properties, name: str) -> None:
    """Aborts what is open under the transactional id ``name``, and fences its producer."""
    login = Login()
    client = producer(given, {"transactional.id": name, "error_cb": login})
    try:
        client.init_transactions(TIMEOUT)
    except KafkaException as e:
        client.poll(0)
        raise login.failure(e, f"Kafka at {given['bootstrap.servers']}, transactional id '{name}'") from None


def _states(consumer: Consumer, prefix: str) -> dict[str, int]:
    """The last state of each id. No topic means that the cluster has not had transactions."""
    listed = consumer.list_topics(_TOPIC, TIMEOUT).topics[_TOPIC]
    if listed.error is not None:
        if listed.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return {}
        raise KafkaException(listed.error)
    waiting = set(listed.partitions)
    consumer.assign([TopicPartition(_TOPIC, p, OFFSET_BEGINNING) for p in waiting])
    found: dict[str, int] = {}
    while waiting:
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error = message.error()
        if error is None:
            found.update(_state(message.key(), message.value(), prefix))
        elif error.code() == KafkaError._PARTITION_EOF:
            waiting.discard(message.partition())
        else:
            raise KafkaException(error)
    return found


def _state(key: bytes, value: bytes | None, prefix: str) -> dict[str, int]:
    """By id; a message without a value says that the broker has forgotten the id."""
    version, length = _ID.unpack_from(key)
    name = key[_ID.size : _ID.size + length].decode() if version == _OF_STATES else ""
    if not name.startswith(prefix) or version != _OF_STATES:
        return {}
    if value is None:
        return {name: -1}
    written, *_, state = _STATE.unpack_from(value)
    if written not in _VALUES:
        raise ConnectorError(
            f"The broker writes the state of transactions in version {written}, which is not known.",
            hint="Name the transactional ids instead of a prefix.",
        )
    return {name: state}


def _unreadable(error: KafkaException, cluster: KafkaCluster) -> ConnectorError:
    found = cluster.login.failure(error, f"Kafka at {cluster.servers}, topic '{_TOPIC}'")
    if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        found.hint = "Name the transactional ids instead of a prefix, or give the user the right to read it."
    return found
