"""Unmatched rows of an outer side, until the end of their wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.watermarks import END, NONE, WATERMARK_COLUMN
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order, due_times

_NUMBER = pa.int64()


@dataclass(frozen=True, slots=True)
class Waiting:
    """Side ``number`` of the join. Rows are named by key and number (``$row``), and lie by the end of their
    wait, in ms."""

    spec: IntervalShape
    number: int
    table: TimeTable

    @classmethod
    def of(cls, spec: IntervalShape, number: int, store: StateStore) -> Waiting:
        return cls(spec, number, store.timeline(spec.waiting[number]))

    def put(
        self, ends: Ints, hashes: Hashes, numbers: Ints, marks: Ints, columns: Mapping[str, pa.Array]
    ) -> None:
        """Rows that wait until ``ends``; ``marks``: the watermarks that they came at."""
        hidden = {ROW: to_arrow(Vec(numbers), _NUMBER), WATERMARK_COLUMN: to_arrow(Vec(marks), _NUMBER)}
        codes = self.table.layout.codes(hashes, [hidden[ROW]])
        self.table.put(ends, codes, {**columns, **hidden})

    def remove(self, ends: Ints, hashes: Hashes, numbers: Ints, keys: list[pa.Array]) -> None:
        """Removes rows that found a partner, if they still wait. A row may be given several times."""
        if len(ends) == 0:
            return
        names = [f.name for f in self.table.layout.identity[1:]]
        columns = [*keys, to_arrow(Vec(numbers), _NUMBER)]
        codes = self.table.layout.codes(hashes, [columns[-1]])
        once = group_rows(codes, columns).heads
        once = once[by_time_order(ends[once], codes[once])]
        columns = [column.take(pa.array(once)) for column in columns]
        there = np.flatnonzero(self.table.lookup(ends[once], codes[once], columns).there)
        gone = {name: column.take(pa.array(there)) for name, column in zip(names, columns, strict=True)}
        once = once[there]
        self.table.put(ends[once], codes[once], gone, np.ones(len(once), np.bool_))

    def ended(self, watermark: int) -> tuple[dict[str, pa.Array], Ints] | None:
        """The output columns of rows whose wait is over, and the ends of their waits."""
        if watermark == NONE:
            return None
        due = self.table.take_due(watermark if watermark == END else watermark - 1)
        columns = {name: single(due.column(name)) for name in self.spec.sides[self.number].output}
        marks: Ints = vector(single(due.column(WATERMARK_COLUMN))).values
        return columns, np.maximum(marks, due_times(due))
