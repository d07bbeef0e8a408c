"""Lookup joins in the worker that has the rows: a chunk's distinct keys are asked for at once.

Cost: what the table asks for the distinct keys of a chunk, and the rows that come back. NULL in a key matches
nothing; rows that go are not asked for (see ``operators.lookup_join``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, single, vector
from tidemill.changelog.grouping import group_rows
from tidemill.connectors.lookup.asking import Asking, OpenedTable, held
from tidemill.connectors.lookup.keyed_rows import KeyedRows, Keys, complete
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError
from tidemill.runtime.spark.exchange import chunks
from tidemill.runtime.spark.kernel import Reports
from tidemill.runtime.spark.settings import ARROW_ROWS_PER_BATCH
from tidemill.runtime.spark.watermark_stage import task_number

_TASK_ROWS = 40
"""Bits of a row's number that count within a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupStage:
    """- ``keys``: positions of the columns that ``asking`` looks up by.
    - ``width``: the number of columns before the hidden columns. The table's columns go between, with one row
      per match (``outer``: NULLs without a match), or with ``nested`` as one column: a list of rows, and then
      the number of the row.
    - ``kind``: the position of the rows' kind, None for insert-only rows.
    - ``scope``: the job to which the cached rows of the table belong.
    - ``bundle``: the most rows of one lookup, None for a whole chunk.
    """

    asking: Asking
    keys: tuple[int, ...]
    outer: bool
    width: int
    name: str
    scope: str
    nested: bool = False
    bundle: int | None = None
    kind: int | None = None
    epoch: int = 0
    report: Reports | None = field(default=None, compare=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first, table, requests = task_number() << _TASK_ROWS, held(self.scope, self.asking), 0
        for number, rows in enumerate(self._bundles(batches)):
            try:
                requests += table.refresh() if number == 0 else 0
                joined, asked = self._joined(rows, table, first)
            except TidemillError as e:
                raise WorkerError(e) from None
            requests, first = requests + asked, first + len(rows)
            yield from joined.combine_chunks().to_batches(max_chunksize=ARROW_ROWS_PER_BATCH)
        if requests and self.report is not None:
            self.report.add({f"{self.name}/{task_number()}": self._counted(requests)})

    def _bundles(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """What is asked for together."""
        for chunk in chunks(batches):
            rows = pa.Table.from_batches(chunk)
            step = self.bundle or len(rows)
            for start in range(0, len(rows), step):
                yield contiguous(rows.slice(start, step))

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

    def _joined(self, rows: pa.Table, table: OpenedTable, first: int) -> tuple[pa.Table, int]:
        keys = [single(rows.column(place)) for place in self.keys]
        asks = complete(keys)
        if self.kind is not None:
            asks &= vector(rows.column(self.kind)).values & 1 == 0
        asking = np.flatnonzero(asks)
        wanted = Keys.of([key.take(pa.array(asking)) for key in keys])
        groups = group_rows(wanted.hashes, wanted.columns)
        distinct = wanted.take(groups.heads)
        answer = table.lookup(distinct.table(self.asking.keys))
        found = KeyedRows.of(answer.rows, self.asking.keys, [c.type for c in keys])
        of_distinct = found.find(distinct)
        places = np.full(len(rows), -1, np.int64)
        places[asking[groups.order]] = of_distinct[groups.ids()]
        made = self._listed(rows, found, places, first) if self.nested else self._beside(rows, found, places)
        return made, answer.requests

    def _beside(self, rows: pa.Table, found: KeyedRows, places: Ints) -> pa.Table:
        left, right = found.matches(places, outer=self.outer)
        picks, answers = pa.array(left), pa.array(np.maximum(right, 0), mask=right < 0)
        own = [single(column).take(picks) for column in rows.columns]
        theirs = [column.chunk(0).take(answers) for column in found.rows.columns]
        return _numbered([*own[: self.width], *theirs, *own[self.width :]])

    def _listed(self, rows: pa.Table, found: KeyedRows, places: Ints, first: int) -> pa.Table:
        left, right = found.matches(places, outer=False)
        theirs = [column.chunk(0).take(pa.array(right)) for column in found.rows.columns]
        structs = pa.StructArray.from_arrays(theirs, names=[f"r{i}" for i in range(len(theirs))])
        offsets = np.searchsorted(left, np.arange(len(rows) + 1)).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), structs)
        numbers = pa.array(first + np.arange(len(rows), dtype=np.int64))
        own = [single(column) for column in rows.columns]
        return _numbered([*own[: self.width], lists, numbers, *own[self.width :]])


def _numbered(columns: list[pa.Array]) -> pa.Table:
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
