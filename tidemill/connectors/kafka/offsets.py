"""A position in topics, as plain JSON.

``{"count": n, "ids": {topic: id}, "partitions": {topic: {partition: [begin, next]}}, "stops": {...}}``: of
each partition the offset that its rows begin at and the first offset that is not read yet. ``count`` is the
number of offsets passed so far: with it row numbers grow over the life of a job. ``ids`` are Kafka's ids of
the topics, which tell a topic that was deleted and created again from the one that was read. ``stops``, of a
bounded table: where each partition ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

Partition = tuple[str, int]
"""A topic and the number of a partition of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPosition:
    """``begins`` and ``nexts`` have the same partitions; ``stops`` is None for an unbounded table."""

    count: int = 0
    ids: Mapping[str, str] = field(default_factory=dict)
    begins: Mapping[Partition, int] = field(default_factory=dict)
    nexts: Mapping[Partition, int] = field(default_factory=dict)
    stops: Mapping[Partition, int] | None = None

    def to_json(self) -> Offset:
        pairs = {p: [self.begins[p], self.nexts[p]] for p in self.nexts}
        made: Offset = {"count": self.count, "ids": dict(self.ids), "partitions": _nested(pairs)}
        return made if self.stops is None else {**made, "stops": _nested(self.stops)}


def from_json(offset: Offset) -> KafkaPosition:
    """StateError for an offset of another source."""
    try:
        begins, nexts = (_flat(offset["partitions"], itemgetter(i)) for i in (0, 1))
        return KafkaPosition(
            count=int(offset["count"]),
            ids=dict(offset["ids"]),
            begins=begins,
            nexts=nexts,
            stops=_flat(offset["stops"], int) if "stops" in offset else None,
        )
    except (KeyError, TypeError, ValueError, IndexError):
        raise StateError(f"Not an offset of a Kafka source: {str(offset)[:200]}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRange:
    """The offsets ``start``..``end`` of a partition; ``number`` counts the offsets before it, over all
    partitions and the life of the job."""

    topic: str
    partition: int
    start: int
    end: int
    number: int

    @property
    def size(self) -> int:
        return self.end - self.start


def ranges(start: Offset | None, end: Offset) -> list[KafkaRange]:
    """What lies between two positions, in the order of topics and partitions, without empty ranges."""
    before, after = KafkaPosition() if start is None else from_json(start), from_json(end)
    number = before.count
    found = []
    for partition in sorted(after.nexts):
        begin = max(before.nexts.get(partition, 0), after.begins[partition])
        size = after.nexts[partition] - begin
        if size > 0:
            topic, which = partition
            found.append(
                KafkaRange(
                    topic=topic, partition=which, start=begin, end=after.nexts[partition], number=number
                )
            )
            number += size
    return found


def _nested(values: Mapping[Partition, object]) -> dict[str, dict[str, object]]:
    made: dict[str, dict[str, object]] = {}
    for (topic, partition), value in sorted(values.items()):
        made.setdefault(topic, {})[str(partition)] = value
    return made


def _flat(nested: Mapping[str, Mapping[str, Any]], number: Callable[[Any], int]) -> dict[Partition, int]:
    return {(t, int(p)): int(number(value)) for t, parts in nested.items() for p, value in parts.items()}
