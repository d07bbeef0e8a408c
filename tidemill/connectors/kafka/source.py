"""Topics as a table: an epoch is a range of offsets of every partition.

The driver asks the cluster where partitions end and plans exact ranges; tasks read them (see ``consuming``).
Offsets live in the job's checkpoint. The consumer group is told of them once they are committed, for
monitoring alone. What cannot be read as planned is an error and never skipped: offsets that retention has
removed, topics that were deleted and created again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.connectors.api import ArrowSource, Offset, ReadLimit, ReadTasks, Splits, SplitSource
from tidemill.connectors.api.source import SourceHistory
from tidemill.connectors.kafka.bounds import begins, stops
from tidemill.connectors.kafka.cluster import KafkaCluster, Topic
from tidemill.connectors.kafka.offsets import KafkaPosition, Partition, from_json, ranges
from tidemill.connectors.kafka.options import EARLIEST, UNBOUNDED, Bound
from tidemill.connectors.kafka.reading import KafkaReader, tasks
from tidemill.connectors.kafka.rows import first_row
from tidemill.connectors.kafka.sharing import message_size, shared_out
from tidemill.connectors.task_frames import read_frame
from tidemill.errors import ConnectorError, StateError
from tidemill.types.physical import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True, kw_only=True)
class KafkaSource(ArrowSource, SplitSource):
    """``names`` of topics, or the ``pattern`` of them; ``group``: the consumer group, '' for none; ``reset``:
    where to go on, earliest or latest, if offsets are gone, '' for an error; ``interval``: seconds between
    two looks for new topics and partitions, 0 for none. ``timed``: the table has a watermark."""

    cluster: KafkaCluster
    reader: KafkaReader
    names: tuple[str, ...]
    pattern: str | None
    group: str
    startup: Bound
    bounded: Bound
    reset: str
    interval: float
    parallelism: int
    timed: bool = False
    clock: Callable[[], float] = time.monotonic
    _begun: KafkaPosition | None = None
    _matched: tuple[str, ...] = ()
    _looked: float | None = None
    _size: int | None = None
    _told: int = 0

    @property
    def is_bounded(self) -> bool:
        return self.bounded.mode != UNBOUNDED

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError where topics are missing, or offsets that are still to be read are gone."""
        before = (self._begun or KafkaPosition()) if start is None else from_json(start)
        topics = self._topics(before)
        if start is not None:
            self._tell_group(before)
        elif self._begun is None:
            # Until something was read, the checkpoint does not know where the table began.
            before = self._begun = self._beginning(topics)
        position = self._with_new(before, topics)
        ends = self._ends(position)
        position = self._kept(position, ends)
        left = {p: ends[p] - n for p, n in position.nexts.items() if ends[p] > n}
        shares = shared_out(left, self.most_rows(limit, left, position))
        nexts = {p: n + shares.get(p, 0) for p, n in position.nexts.items()}
        return replace(position, nexts=nexts, count=position.count + sum(shares.values())).to_json()

    def remembered(self, end: Offset, *, ended: bool) -> KafkaHistory:
        position = from_json(end)
        if sum(n - position.begins[p] for p, n in position.nexts.items()) != position.count:
            raise StateError("offsets were skipped when they were gone ('auto.offset.reset')")
        try:
            self._topics(position)
            firsts = self.cluster.earliest([p for p, n in position.nexts.items() if n > position.begins[p]])
        except ConnectorError as e:
            raise StateError(e.message.removesuffix(".")) from e
        for (topic, partition), first in sorted(firsts.items()):
            begin = position.begins[topic, partition]
            if first > begin:
                raise StateError(
                    f"topic '{topic}', partition {partition} begins at offset {first} now, and was read from "
                    f"offset {begin} on"
                )
        return KafkaHistory(source=self, last=position, bounded=ended)

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return not ranges(start, end)

    def is_finished(self, offset: Offset | None) -> bool:
        # A table without a message never has an epoch, and so no offset.
        position = self._begun if offset is None else from_json(offset)
        if position is None or not self.is_bounded:
            return False
        return all(position.nexts[p] >= stop for p, stop in (position.stops or {}).items())

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return read_frame(spark, self.read_tasks(spark, start, end), self._schema())

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        found = ranges(start, end)
        made = tasks(found, self.parallelism, whole=self.timed)
        return ReadTasks.of_rows(made, self.reader.read, sum(part.size for part in found))

    def read_all(self, spark: SparkSession) -> DataFrame:
        """ConnectorError where the table ends behind what is there."""
        end = self.next_offset(None, ReadLimit())
        if not self.is_finished(end):
            position = from_json(end)
            stops = position.stops or {}
            topic, partition = found = min(p for p, stop in stops.items() if position.nexts[p] < stop)
            raise ConnectorError(
                f"Topic '{topic}', partition {partition} ends at {position.nexts[found]}, but the table"
                f" ends at offset {stops[found]}.",
                hint="In streaming mode the job waits for the rest.",
            )
        return self.read(spark, None, end)

    def splits(self, start: Offset | None, end: Offset) -> Splits:
        found = ranges(start, end)
        return Splits(
            names=tuple(f"{topic}-{partition}" for topic, partition in sorted(from_json(end).nexts)),
            read=tuple((first_row(part), f"{part.topic}-{part.partition}") for part in found),
        )

    def extent(self, start: Offset | None, end: Offset) -> str:
        return f"{sum(part.size for part in ranges(start, end)):,} messages"

    # -- planning ---------------------------------------------------------------------------------

    def _topics(self, before: KafkaPosition) -> dict[str, Topic]:
        """What is read, as it is now. ConnectorError where it is not what was read before."""
        names = self.names if self.pattern is None else self._match(self.pattern)
        found = self.cluster.topics(sorted({*names, *before.ids}))
        for name, topic in found.items():
            if before.ids.get(name, topic.id) != topic.id:
                raise self._recreated(name, topic, before)
        return found

    def _match(self, pattern: str) -> tuple[str, ...]:
        if self._is_time_to_look():
            self._matched = tuple(self.cluster.matching(pattern))
        return self._matched

    def _is_time_to_look(self) -> bool:
        now = self.clock()
        if self._looked is not None and (not self.interval or now < self._looked + self.interval):
            return False
        self._looked = now
        return True

    def _recreated(self, name: str, topic: Topic, before: KafkaPosition) -> ConnectorError:
        partitions = [p for p in before.nexts if p[0] == name and p[1] in topic.partitions]
        ends = self.cluster.latest(partitions)
        read = "; ".join(
            f"partition {p[1]} was read up to offset {before.nexts[p]} and now ends at {ends[p]}"
            for p in sorted(partitions)
        )
        return ConnectorError(
            f"Topic '{name}' was deleted and created again: its offsets start again ({read}).",
            hint="Start the job with a checkpoint directory of its own to read the new topic.",
        )

    def _beginning(self, topics: dict[str, Topic]) -> KafkaPosition:
        partitions = _partitions(topics)
        found = begins(self.startup, self.cluster, self.group, self.reset, partitions)
        ends = stops(self.bounded, self.cluster, self.group, partitions) if self.is_bounded else None
        if ends is not None:
            ends = {p: max(end, found[p]) for p, end in ends.items()}
        ids = {name: topic.id for name, topic in topics.items()}
        return KafkaPosition(ids=ids, begins=found, nexts=found, stops=ends)

    def _with_new(self, before: KafkaPosition, topics: dict[str, Topic]) -> KafkaPosition:
        """Partitions that are new begin with their first message."""
        new = [p for p in _partitions(topics) if p not in before.nexts]
        if not new or before.stops is not None or not (self.interval or self.pattern):
            return before
        found = begins(Bound(mode=EARLIEST), self.cluster, self.group, self.reset, new)
        ids = {name: topic.id for name, topic in topics.items()}
        return replace(before, ids=ids, begins={**before.begins, **found}, nexts={**before.nexts, **found})

    def _ends(self, position: KafkaPosition) -> dict[Partition, int]:
        """How far there is something to read now."""
        ends = self.cluster.latest(position.nexts)
        if position.stops is None:
            return ends
        return {p: min(end, position.stops.get(p, end)) for p, end in ends.items()}

    def _kept(self, position: KafkaPosition, ends: dict[Partition, int]) -> KafkaPosition:
        """``position`` where all that is still to be read is there; as 'auto.offset.reset' says else."""
        firsts = self.cluster.earliest([p for p, n in position.nexts.items() if ends[p] > n])
        lost = {p: first for p, first in firsts.items() if first > position.nexts[p]}
        beyond = {p: end for p, end in ends.items() if end < position.nexts[p] and position.stops is None}
        if not lost and not beyond:
            return position
        if not self.reset:
            raise self._out_of_range(position, lost, beyond)
        to = self.cluster.earliest([*lost, *beyond]) if self.reset == "earliest" else ends
        moved = {p: to[p] for p in lost}
        return replace(position, begins={**position.begins, **moved}, nexts={**position.nexts, **moved})

    def _out_of_range(
        self, position: KafkaPosition, lost: dict[Partition, int], beyond: dict[Partition, int]
    ) -> ConnectorError:
        topic, partition = found = min({**lost, **beyond})
        wanted = position.nexts[found]
        what = f"begins at offset {lost[found]}" if found in lost else f"ends at offset {beyond[found]}"
        return ConnectorError(
            f"Topic '{topic}', partition {partition}: offset {wanted} is to be read next, but the partition"
            f" {what}.",
            hint="Messages were removed before they were read. 'properties.auto.offset.reset' ="
            " 'earliest' goes on without them.",
        )

    def most_rows(self, limit: ReadLimit, left: dict[Partition, int], position: KafkaPosition) -> int | None:
        """How many messages an epoch may take."""
        counts = [] if limit.rows is None else [limit.rows]
        if limit.bytes is not None and sum(left.values()) * _SMALL > limit.bytes:
            if self._size is None:
                self._size = message_size(self.cluster, max(left, key=lambda p: left[p]), position.nexts)
            counts.append(max(limit.bytes // self._size, 1))
        return min(counts, default=None)

    def _tell_group(self, position: KafkaPosition) -> None:
        """What was read is committed by now. Not knowing it harms nobody."""
        if self.group and position.count > self._told:
            self._told = position.count
            self.cluster.commit(self.group, position.nexts)

    def _schema(self) -> str:
        rows = self.reader.rows
        parts = [spark_schema(rows.fields)] if rows.fields else []
        parts += [f"`{KIND_COLUMN}` TINYINT"] if rows.changelog else []
        parts += [f"`{SEQUENCE_COLUMN}` BIGINT"] if rows.sequence else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaHistory(SourceHistory[KafkaSource], SplitSource):
    """The messages up to ``last``; all partitions come to their ends together."""

    last: KafkaPosition

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        before = KafkaPosition() if start is None else from_json(start)
        # A history that goes on further may have more partitions.
        at = replace(self.last, count=before.count, nexts={**self.last.begins, **before.nexts})
        left = {p: n - at.nexts[p] for p, n in self.last.nexts.items() if n > at.nexts[p]}
        shares = shared_out(left, self.source.most_rows(limit, left, at))
        nexts = {p: n + shares.get(p, 0) for p, n in at.nexts.items()}
        return replace(at, nexts=nexts, count=at.count + sum(shares.values())).to_json()

    def is_finished(self, offset: Offset | None) -> bool:
        return self.is_bounded and offset is not None and from_json(offset).count == self.last.count

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, self.last.to_json())

    def splits(self, start: Offset | None, end: Offset) -> Splits:
        return self.source.splits(start, end)


_SMALL = 50
"""Bytes of a small message: of fewer messages than this allows, nobody asks how large they are."""


def _partitions(topics: dict[str, Topic]) -> list[Partition]:
    return [(name, p) for name, topic in sorted(topics.items()) for p in topic.partitions]
