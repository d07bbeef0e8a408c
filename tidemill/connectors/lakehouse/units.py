"""Plans and runs the merges of an epoch: the buckets that it touches, on the driver or in Spark's workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.lakehouse.buckets import bucket_of
from tidemill.connectors.lakehouse.changes import Partition, Staged
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.merging import BucketMerger, Unit
from tidemill.connectors.lakehouse.stored_types import typed_value
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_DRIVER = 64 << 20
"""Bytes of files below which a merge takes less than a Spark job costs."""
_TASKS = 64
Values = tuple[object, ...]


def plan_units(
    files: Iterable[DataFile],
    staged: Mapping[tuple[Partition, int], Sequence[Staged]],
    partitions: Sequence[Field],
    buckets: int,
) -> list[Unit]:
    """The buckets to merge: those with changes, and all of a partition that has changes and foreign files."""
    texts = {values_of(partition, partitions): partition for partition, _ in staged}
    own: dict[tuple[Values, int], list[DataFile]] = {}
    foreign: dict[Values, list[DataFile]] = {}
    for file in files:
        values = tuple(file.partition[f.name] for f in partitions)
        bucket = bucket_of(file.path, buckets)
        if bucket is None:
            foreign.setdefault(values, []).append(file)
        else:
            own.setdefault((values, bucket), []).append(file)
    wanted = {(values_of(partition, partitions), bucket) for partition, bucket in staged}
    wanted |= {(values, bucket) for values in texts if values in foreign for bucket in range(buckets)}
    return [
        Unit(
            partition=texts[values],
            bucket=bucket,
            files=tuple(own.get((values, bucket), ())),
            foreign=tuple(foreign.get(values, ())),
            staged=tuple(staged.get((texts[values], bucket), ())),
        )
        for values, bucket in sorted(wanted, key=str)
    ]


def values_of(partition: Partition, fields: Sequence[Field]) -> Values:
    """Of a partition, as files have them."""
    values = dict(partition)
    return tuple(typed_value(field, values[field.name]) for field in fields)


def merged(merger: BucketMerger, units: Sequence[Unit], spark: SparkSession | None) -> list[dict[str, Any]]:
    """What ``merger`` gives for each unit. ConnectorError where one fails."""
    if spark is None or sum(unit.size for unit in units) <= ON_DRIVER:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            return list(pool.map(merger.merge, units))
    tasks = [list(units[place::_TASKS]) for place in range(min(_TASKS, len(units)))]
    rows = map_batches(task_frame(spark, tasks), _MergingTask(merger), "result STRING").collect()
    return [json.loads(row.result) for row in rows]


@dataclass(frozen=True, slots=True)
class _MergingTask:
    merger: BucketMerger

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for units in assigned(batches):
            try:
                results = [json.dumps(self.merger.merge(unit)) for unit in units]
            except ConnectorError as e:
                raise WorkerError(e) from None
            yield pa.record_batch([pa.array(results, pa.string())], names=["result"])
