"""One epoch of an interval join: pairs with stored rows, rows whose wait ends, and removals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.arrived import MICROSECONDS, Arrived, Pairs
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.operators.interval_join.shown import Shown
from tidemill.operators.interval_join.waiting import Waiting
from tidemill.state.store import StateStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The rows of an epoch that can match (``able``) or cannot (``unable``), per side, and the pairs that are
    in time and pass the kernel's part of the condition. ``pairs``: pairs within the epoch, then for each side
    the pairs of its new rows with stored rows."""

    able: tuple[Arrived, Arrived]
    unable: tuple[Arrived, Arrived]
    pairs: tuple[Pairs, Pairs, Pairs]


def find_pairs(
    spec: IntervalShape, store: StateStore, epoch: EpochContext, inputs: tuple[pa.Table, ...]
) -> Epoch:
    """Finds the pairs, stores rows that later rows may match, and removes rows that no row can match."""
    arrived = [_arrived(spec, epoch, number, table) for number, table in enumerate(inputs)]
    (left, no_left), (right, no_right) = arrived
    able = (left, right)
    tables = [store.timeline(layout) for layout in spec.rows]
    within = Pairs.within_epoch(spec, *able)
    ours, theirs = (Pairs.of(spec, number, able[number], tables[1 - number]) for number in (0, 1))
    for number in (0, 1):
        ended = _last_ended_bucket(spec, epoch, number)
        # Of the epoch's rows those are kept that later ones may ask for.
        able[number].take(spec.buckets(able[number].times) > ended).keep(spec, number, tables[number])
        tables[number].forget_due(ended)
    return Epoch(able=able, unable=(no_left, no_right), pairs=(within, ours, theirs))


def _arrived(
    spec: IntervalShape, epoch: EpochContext, number: int, table: pa.Table
) -> tuple[Arrived, Arrived]:
    arrived, can = Arrived.of(spec, number, table, epoch)
    able = arrived.take(can)
    late = np.count_nonzero(able.times + spec.waits[number] < able.marks)
    epoch.late.count += int(late)
    return able, arrived.take(~can)


def _last_ended_bucket(spec: IntervalShape, epoch: EpochContext, number: int) -> int:
    """The last bucket whose rows do not wait any more."""
    watermark = epoch.watermark
    if watermark in (NONE, END):
        return watermark
    return int((watermark - spec.waits[number]) // spec.bucket) - 1


@dataclass(slots=True)
class IntervalStep:
    """One epoch of a join whose condition the kernel can compute."""

    spec: IntervalShape
    store: StateStore
    epoch: EpochContext

    def run(self, left: pa.Table, right: pa.Table) -> pa.Table:
        spec = self.spec
        epoch_pairs, output = find_pairs(spec, self.store, self.epoch, (left, right)), Shown(self.spec)
        for pairs in epoch_pairs.pairs:
            columns = [pairs.column(name) for side in spec.sides for name in side.output]
            output.pairs(columns, pairs.marks)
        within, *with_kept = epoch_pairs.pairs
        for number in (0, 1):
            if not spec.outer[number]:
                continue
            # Those that can match nothing are shown at once.
            self._show(output, number, epoch_pairs.unable[number])
            own = (within.rows if number == 0 else within.partners, with_kept[number].rows)
            self._wait(output, number, epoch_pairs.able[number], own, with_kept[1 - number])
        return output.table(self.epoch.epoch)

    def _show(self, output: Shown, number: int, rows: Arrived) -> None:
        output.alone(number, {n: rows.columns[n] for n in self.spec.sides[number].output}, rows.marks)

    def _wait(
        self, output: Shown, number: int, arrived: Arrived, own: tuple[Ints, ...], other: Pairs
    ) -> None:
        """Keeps the rows that nothing matches yet and shows those whose wait is over. ``own``: places of rows
        that have a partner; ``other``: pairs of earlier rows of this side."""
        spec = self.spec
        waiting = Waiting.of(spec, number, self.store)
        matched = np.zeros(len(arrived), np.bool_)
        for rows in own:
            matched[rows] = True
        new = arrived.take(~matched)
        waiting.put(new.times + spec.waits[number], new.hashes, new.numbers, new.marks, new.columns)
        if len(other):
            ends = other.found.ints(spec.times[number]) // MICROSECONDS + spec.waits[number]
            keys = [other.found.column(key) for key in spec.sides[number].keys]
            waiting.remove(ends, other.hashes, other.found.ints(ROW), keys)
        ended = waiting.ended(self.epoch.watermark)
        if ended is not None:
            output.alone(number, *ended)
