"""One epoch of an interval join: pairs with what is kept, rows whose wait ends, and what is forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.watermarks import END, NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.arrived import MICROSECONDS, Arrived, Pairs
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order, due_times

_NUMBER = pa.int64()


@dataclass(slots=True)
class IntervalStep:
    """``parts``: what is shown, with the watermark that each row comes at."""

    spec: IntervalShape
    store: StateStore
    epoch: EpochContext
    parts: list[tuple[list[pa.Array], Ints]] = field(default_factory=list)

    def run(self, left: pa.Table, right: pa.Table) -> pa.Table:
        spec = self.spec
        sides = [self._arrived(number, table) for number, table in enumerate((left, right))]
        tables = [self.store.timeline(layout) for layout in spec.rows]
        met = Pairs.within_epoch(spec, *sides)
        found = [Pairs.of(spec, number, sides[number], tables[1 - number]) for number in (0, 1)]
        for pairs in (met, *found):
            self._show_pairs(pairs)
        for number in (0, 1):
            ended = self._ended(number)
            # Of the epoch's rows those are kept that later ones may ask for.
            sides[number].take(spec.buckets(sides[number].times) > ended).keep(spec, number, tables[number])
            if spec.outer[number]:
                own = (met.rows if number == 0 else met.partners, found[number].rows)
                self._wait(number, sides[number], own, found[1 - number])
            tables[number].forget_due(ended)
        return self._shown()

    def _arrived(self, number: int, table: pa.Table) -> Arrived:
        """The rows that may match; those that cannot are shown at once, if at all."""
        arrived, can = Arrived.of(self.spec, number, table, self.epoch)
        alone = arrived.take(~can)
        if self.spec.outer[number] and len(alone):
            columns = {name: alone.columns[name] for name in self.spec.sides[number].output}
            self._show_alone(number, columns, alone.marks)
        able = arrived.take(can)
        late = np.count_nonzero(able.times + self.spec.waits[number] < able.marks)
        self.epoch.late.count += int(late)
        return able

    def _ended(self, number: int) -> int:
        """The last bucket of which no row is waited for."""
        watermark = self.epoch.watermark
        if watermark in (NONE, END):
            return watermark
        return int((watermark - self.spec.waits[number]) // self.spec.bucket) - 1

    # -- rows of an outer side --------------------------------------------------------------------

    def _wait(self, number: int, arrived: Arrived, own: tuple[Ints, ...], other: Pairs) -> None:
        """Keeps the rows that nothing matches yet and shows those whose wait is over. ``own``: places of rows
        that have a partner; ``other``: pairs of earlier rows of this side."""
        table = self.store.timeline(self.spec.waiting[number])
        matched = np.zeros(len(arrived), np.bool_)
        for rows in own:
            matched[rows] = True
        self._put(table, number, arrived.take(~matched))
        self._matched(table, number, other)
        watermark = self.epoch.watermark
        if watermark == NONE:
            return
        due = table.take_due(watermark if watermark == END else watermark - 1)
        columns = {name: single(due.column(name)) for name in self.spec.sides[number].output}
        marks: Ints = vector(single(due.column(WATERMARK_COLUMN))).values
        self._show_alone(number, columns, np.maximum(marks, due_times(due)))

    def _put(self, table: TimeTable, number: int, rows: Arrived) -> None:
        hidden = {
            ROW: to_arrow(Vec(rows.numbers), _NUMBER),
            WATERMARK_COLUMN: to_arrow(Vec(rows.marks), _NUMBER),
        }
        codes = table.layout.codes(rows.hashes, [hidden[ROW]])
        table.put(rows.times + self.spec.waits[number], codes, {**rows.columns, **hidden})

    def _matched(self, table: TimeTable, number: int, pairs: Pairs) -> None:
        """The rows that were found have a partner now: those that had none are not waited for any more."""
        spec = self.spec
        if len(pairs) == 0:
            return
        names = [f.name for f in table.layout.identity[1:]]
        columns = [pairs.found.column(name) for name in names]
        codes = table.layout.codes(pairs.hashes, [columns[-1]])
        dues = pairs.found.ints(spec.times[number]) // MICROSECONDS + spec.waits[number]
        # A row that was found several times is one entry.
        once = group_rows(codes, columns).heads
        once = once[by_time_order(dues[once], codes[once])]
        columns = [column.take(pa.array(once)) for column in columns]
        there = np.flatnonzero(table.lookup(dues[once], codes[once], columns).there)
        gone = {name: column.take(pa.array(there)) for name, column in zip(names, columns, strict=True)}
        once = once[there]
        table.put(dues[once], codes[once], gone, np.ones(len(once), np.bool_))

    # -- output -----------------------------------------------------------------------------------

    def _show_pairs(self, pairs: Pairs) -> None:
        if len(pairs):
            columns = [pairs.column(name) for side in self.spec.sides for name in side.output]
            self.parts.append((columns, pairs.marks))

    def _show_alone(self, number: int, columns: Mapping[str, pa.Array], marks: Ints) -> None:
        """Rows of one side, NULL for the other's columns; ``marks``: up to when they waited."""
        if len(marks) == 0:
            return
        shown: list[pa.Array] = []
        for side, spec in enumerate(self.spec.sides):
            types = dict(spec.columns)
            shown += [columns[n] if side == number else pa.nulls(len(marks), types[n]) for n in spec.output]
        self.parts.append((shown, marks))

    def _shown(self) -> pa.Table:
        schema = self.spec.output_schema()
        if not self.parts:
            return schema.empty_table()
        columns = [pa.chunked_array(chunks) for chunks in zip(*(c for c, _ in self.parts), strict=True)]
        marks = np.concatenate([m for _, m in self.parts])
        if self.spec.sequence:
            columns.append(pa.array((self.epoch.epoch << 32) + np.arange(len(marks), dtype=np.int64)))
        if self.spec.keeps_time:
            columns.append(pa.array(np.where(marks == NONE, NONE, marks - self.spec.delay)))
        return pa.table(columns, schema=schema)
