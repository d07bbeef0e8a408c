"""Where a table's partitions begin and end, as its modes say."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.connectors.kafka.cluster import KafkaCluster
from tidemill.connectors.kafka.offsets import Partition
from tidemill.connectors.kafka.options import EARLIEST, LATEST, SPECIFIC, TIMESTAMP, Bound
from tidemill.errors import ConnectorError

Offsets = dict[Partition, int]


def begins(
    bound: Bound, cluster: KafkaCluster, group: str, reset: str, partitions: Iterable[Partition]
) -> Offsets:
    """``reset``: earliest or latest, where the consumer ``group`` has no offset; '' for an error."""
    wanted = list(partitions)
    if bound.mode == EARLIEST:
        return cluster.earliest(wanted)
    if bound.mode == LATEST:
        return cluster.latest(wanted)
    if bound.mode == TIMESTAMP:
        return cluster.at(wanted, bound.millis or 0)
    if bound.mode == SPECIFIC:
        # As in Flink: partitions that are not named begin as the group says, else with their first message.
        named = _specific(bound, wanted)
        others = [p for p in wanted if p not in named]
        return {**cluster.earliest(others), **_committed(cluster, group, others), **named}
    found = cluster.committed(group, wanted)
    missing = [p for p in wanted if p not in found]
    if missing and not reset:
        topic, partition = missing[0]
        raise ConnectorError(
            f"The consumer group '{group}' has no offset for topic '{topic}', partition {partition}.",
            hint="Set 'scan.startup.mode', or 'properties.auto.offset.reset' to earliest or latest.",
        )
    ask = cluster.earliest if reset == "earliest" else cluster.latest
    return {**found, **(ask(missing) if missing else {})}


def stops(bound: Bound, cluster: KafkaCluster, group: str, partitions: Iterable[Partition]) -> Offsets:
    """Of a bounded table; no end is behind the last message that is there now."""
    wanted = list(partitions)
    latest = cluster.latest(wanted)
    if bound.mode == LATEST:
        return latest
    if bound.mode == TIMESTAMP:
        return cluster.at(wanted, bound.millis or 0)
    named = _specific(bound, wanted)
    return {**latest, **_committed(cluster, group, [p for p in wanted if p not in named]), **named}


def _committed(cluster: KafkaCluster, group: str, partitions: list[Partition]) -> Offsets:
    return cluster.committed(group, partitions) if group and partitions else {}


def _specific(bound: Bound, partitions: list[Partition]) -> Offsets:
    offsets = bound.offsets or {}
    return {p: offsets[p[1]] for p in partitions if p[1] in offsets}
