"""How an epoch's messages are shared out over partitions."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition

from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.failures import failure
from tidemill.connectors.kafka.offsets import Partition

_SAMPLE = 500
_UNKNOWN = 1024
"""Bytes that a message is taken to have where none can be looked at."""


def shared_out(left: Mapping[Partition, int], rows: int | None) -> dict[Partition, int]:
    """At most ``rows`` of what is ``left``, of each partition in proportion: all come to their ends together.

    ``{a: 30, b: 10}`` and 8 rows: 6 of a, 2 of b.
    """
    total = sum(left.values())
    if rows is None or total <= rows:
        return dict(left)
    shares = {p: count * rows // total for p, count in left.items()}
    spare = rows - sum(shares.values())
    for p in sorted(left, key=lambda p: shares[p] - left[p]):
        more = min(spare, left[p] - shares[p])
        shares[p] += more
        spare -= more
    return shares


def message_size(cluster: KafkaCluster, partition: Partition, offsets: Mapping[Partition, int]) -> int:
    """Bytes of an average message, of some that are read next."""
    more = {"group.id": "tidemill", "enable.auto.commit": False, "queued.min.messages": _SAMPLE}
    consumer = cluster.consumer(more)
    try:
        consumer.assign([TopicPartition(*partition, offsets[partition])])
        found = [m for m in consumer.consume(_SAMPLE, timeout=2.0) if m.error() is None]
    except KafkaException as e:
        raise failure(e, f"Topic '{partition[0]}', partition {partition[1]}") from None
    finally:
        consumer.close()
    sizes = [len(m.value() or b"") + len(m.key() or b"") for m in found]
    return max(sum(sizes) // len(sizes), 1) if sizes else _UNKNOWN
