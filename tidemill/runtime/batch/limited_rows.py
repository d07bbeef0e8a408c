"""The rows of a LIMIT, read part after part of its table until there are enough.

Invariant: the parts follow each other, so no byte is decoded twice and no row comes twice; all of them are of
the files that were there at first. Cost: a job for each part (``physical.batch.portions``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.physical.batch.nodes import TableSourceScan
from tidemill.physical.batch.portions import Portioned
from tidemill.physical.nodes import PhysicalNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The part (``start``, ``end``] of the table of ``scan``. ``is_rest``: nothing comes after it."""

    scan: TableSourceScan
    source: Source
    start: Offset | None
    end: Offset
    is_rest: bool

    def read(self, spark: SparkSession) -> DataFrame:
        rows = self.source.read(spark, self.start, self.end)
        # Or Spark ends the workers whose rows a LIMIT does not take, and forks others for the next query.
        return rows if self.is_rest else rows.repartition(1)


def limited_rows(
    asked: Portioned, source: Source, run: Callable[[PhysicalNode, Stretch], pa.Table]
) -> pa.Table:
    """``run`` gives the rows of a plan that reads nothing but a stretch."""
    found: list[pa.Table] = []
    missing = asked.most
    for stretch in _stretches(asked, source):
        found.append(run(asked.taking(missing), stretch))
        missing -= found[-1].num_rows
        if missing <= 0:
            break
    return pa.concat_tables(found).slice(asked.offset)


def _stretches(asked: Portioned, source: Source) -> Iterator[Stretch]:
    start: Offset | None = None
    for size in (*asked.sizes(), None):
        end = source.next_offset(start, ReadLimit(bytes=size))
        yield Stretch(scan=asked.scan, source=source, start=start, end=end, is_rest=size is None)
        start = end
