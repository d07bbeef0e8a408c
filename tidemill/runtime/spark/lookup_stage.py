"""Lookup joins in the worker that has the rows: a chunk's distinct keys are asked for at once.

Cost: one request per thousand keys of a chunk, and the rows that come back. NULL in a key matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyspark import Accumulator

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, single, validity
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.api import LookupTable
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.runtime.spark.exchange import chunks
from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.settings import ARROW_ROWS_PER_BATCH
from tidemill.runtime.spark.watermark_stage import task_number


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupStage:
    """``keys``: places in the rows, and the table's columns; ``width``: how many columns come before the
    hidden ones, between which the table's go."""

    table: LookupTable
    keys: tuple[tuple[int, str], ...]
    outer: bool
    width: int
    name: str
    epoch: int = 0
    report: Accumulator[Report] | None = field(default=None, compare=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        requests = 0
        for chunk in chunks(batches):
            rows = contiguous(pa.Table.from_batches(chunk))
            try:
                joined, asked = self._joined(rows)
            except TidemillError as e:
                raise WorkerError(e) from None
            requests += asked
            yield from joined.combine_chunks().to_batches(max_chunksize=ARROW_ROWS_PER_BATCH)
        if requests and self.report is not None:
            self.report.add({f"{self.name}/{task_number()}": self._counted(requests)})

    def _counted(self, requests: int) -> dict[str, object]:
        """A task's report, as an operator's without state."""
        return {
            "operator": self.name,
            "partition": task_number(),
            "epoch": self.epoch,
            "manifest": None,
            "rows_in": 0,
            "rows_out": 0,
            "state_rows": 0,
            "first": False,
            "requests": requests,
            "marks": {},
        }

    def _joined(self, rows: pa.Table) -> tuple[pa.Table, int]:
        keys = [single(rows.column(place)) for place, _ in self.keys]
        there = np.ones(len(rows), np.bool_)
        for key in keys:
            valid = validity(key)
            there &= True if valid is None else valid
        asking = np.flatnonzero(there)
        wanted = [key.take(pa.array(asking)) for key in keys]
        groups = group_rows(hash_columns(wanted, len(asking)), wanted)
        heads = pa.array(groups.heads)
        distinct = pa.table([k.take(heads) for k in wanted], names=[name for _, name in self.keys])
        found = self.table.lookup(distinct)
        left, right = self._pairs(len(rows), asking, wanted, found.rows)
        return self._beside(rows, left, contiguous(found.rows), right), found.requests

    def _pairs(self, size: int, asking: Ints, wanted: list[pa.Array], found: pa.Table) -> tuple[Ints, Ints]:
        """Rows and what was found for them, by place; -1: nothing."""
        names = [name for _, name in self.keys]
        answers = [single(found.column(n)).cast(k.type) for n, k in zip(names, wanted, strict=True)]
        both = [pa.concat_arrays([a, b]) for a, b in zip(wanted, answers, strict=True)]
        groups = group_rows(hash_columns(both, len(asking) + len(found)), both)
        owners = np.empty(len(asking) + len(found), np.int64)
        owners[groups.order] = groups.ids()
        own, theirs = owners[: len(asking)], owners[len(asking) :]
        order = np.argsort(theirs, kind="stable")
        counts = np.bincount(theirs, minlength=groups.count)
        starts = np.cumsum(counts) - counts
        matches = np.zeros(size, np.int64)
        matches[asking] = counts[own]
        first = np.zeros(size, np.int64)
        first[asking] = starts[own]
        shown = np.maximum(matches, 1) if self.outer else matches
        left = np.repeat(np.arange(size), shown)
        ends = np.cumsum(shown)
        place = np.arange(len(left)) - np.repeat(ends - shown, shown) + first[left]
        matched = matches[left] > 0
        right = np.full(len(left), -1, np.int64)
        right[matched] = order[place[matched]]
        return left, right

    def _beside(self, rows: pa.Table, left: Ints, found: pa.Table, right: Ints) -> pa.Table:
        picks, answers = pa.array(left), pa.array(np.maximum(right, 0), mask=right < 0)
        own = [single(column).take(picks) for column in rows.columns]
        theirs = [single(column).take(answers) for column in found.columns]
        columns = [*own[: self.width], *theirs, *own[self.width :]]
        return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
