"""Reads ranges of topics in Spark Python workers, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidemill.connectors.kafka.consuming import RangeReader
from tidemill.connectors.kafka.offsets import KafkaRange
from tidemill.connectors.kafka.rows import KafkaRows
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError

_LEAST = 10_000
"""Messages that are worth a task of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaReader:
    messages: RangeReader
    rows: KafkaRows

    def read(self, parts: Sequence[KafkaRange]) -> Iterator[pa.RecordBatch]:
        """WorkerError where messages are gone or do not fit."""
        try:
            for part in parts:
                for messages in self.messages.batches(part):
                    yield from self.rows.table(messages, part).combine_chunks().to_batches()
        except TidemillError as e:
            raise WorkerError(e) from None


def tasks(parts: Sequence[KafkaRange], parallelism: int, *, whole: bool = False) -> list[list[KafkaRange]]:
    """About equally many messages for each task, in the order of ``parts``, which are cut where they are
    large; not so if they are to stay ``whole``."""
    total = sum(part.size for part in parts)
    goal = max(_LEAST, -(-total // max(parallelism, 1)))
    made: list[list[KafkaRange]] = []
    left = 0
    for part in parts:
        while part.size:
            if left <= 0:
                made.append([])
                left = goal
            size = part.size if whole or part.size <= left + _LEAST // 2 else left
            made[-1].append(replace(part, end=part.start + size))
            part = replace(part, start=part.start + size, number=part.number + size)
            left -= size
    return made
