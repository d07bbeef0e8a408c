"""The output of an interval join in an epoch: pairs, and rows without a partner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import NONE
from tidemill.operators.interval_join.shape import IntervalShape


@dataclass(slots=True)
class Shown:
    """``parts``: the emitted rows, with the watermark of each row."""

    spec: IntervalShape
    parts: list[tuple[list[pa.Array], Ints]] = field(default_factory=list)

    def pairs(self, columns: list[pa.Array], marks: Ints) -> None:
        """Rows of all the output's columns."""
        if len(marks):
            self.parts.append((columns, marks))

    def alone(self, number: int, columns: Mapping[str, pa.Array], marks: Ints) -> None:
        """Rows of one side, NULL for the other's columns; ``marks``: up to when they waited."""
        if len(marks) == 0:
            return
        columns_of_row: list[pa.Array] = []
        for side, spec in enumerate(self.spec.sides):
            types = dict(spec.columns)
            columns_of_row += [
                columns[n] if side == number else pa.nulls(len(marks), types[n]) for n in spec.output
            ]
        self.parts.append((columns_of_row, marks))

    def table(self, epoch: int) -> pa.Table:
        schema = self.spec.output_schema()
        if not self.parts:
            return schema.empty_table()
        columns = [pa.chunked_array(chunks) for chunks in zip(*(c for c, _ in self.parts), strict=True)]
        marks = np.concatenate([m for _, m in self.parts])
        if self.spec.sequence:
            columns.append(pa.array((epoch << 32) + np.arange(len(marks), dtype=np.int64)))
        if self.spec.keeps_time:
            columns.append(pa.array(np.where(marks == NONE, NONE, marks - self.spec.delay)))
        return pa.table(columns, schema=schema)
