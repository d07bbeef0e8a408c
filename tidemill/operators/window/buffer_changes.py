"""The output of a window buffer (see ``window_buffer``) if its trigger emits windows again.

A group is the rows of a window and of the keys by which rows are partitioned. It emits when its window
ends, and before and after that as the trigger says: the output of its rows now, less the output of the rows
that were ``seen`` when it last emitted. So the state holds no emitted results, only rows: the rows that were
``seen``, and the rows that wait (the port's own table). Both are removed when their window is shut, after a
last output.

Cost of an epoch: the groups that emit, with all their rows. Insert-only rows are not kept if no Top-N can
emit them any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.operators.api import EpochContext, OperatorSpec
from tidemill.operators.rows.waiting import WaitingRows, summed
from tidemill.operators.window.buffered_port import BufferedPort, Came, Choosing
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.triggers.shown import distinct, places_in
from tidemill.operators.window.triggers.timers import Timers
from tidemill.operators.window.triggers.trigger import Horizons, Trigger
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order


class BufferedWindows(Protocol):
    """What is told of them: see ``window_buffer``."""

    @property
    def inner(self) -> OperatorSpec: ...
    @property
    def trigger(self) -> Trigger: ...
    @property
    def identity(self) -> pa.Schema: ...
    @property
    def timers(self) -> Timers: ...
    @property
    def seen(self) -> tuple[WaitingRows, ...]: ...
    def output_schema(self) -> pa.Schema: ...
    def window_ends(self, rows: pa.Table) -> Ints: ...
    def given(self, rows: pa.Table, ends: Ints, epoch: EpochContext) -> pa.Table: ...


@dataclass(frozen=True, slots=True)
class _New:
    """Of one port: the epoch's rows that count, and those that have waited and whose window has ended."""

    port: BufferedPort
    new: pa.Table
    waited: pa.Table

    @staticmethod
    def of(came: Came) -> _New:
        return _New(came.port, came.weighted(came.rows), came.waited)

    def groups(self, rows: pa.Table, identity: pa.Schema) -> pa.Table:
        """The group of each of ``rows``."""
        columns = [rows.column(DUE), *(rows.column(name) for name in self.port.keys)]
        return pa.table(columns, names=identity.names).cast(identity)


@dataclass(frozen=True, slots=True)
class Changes:
    """What changes in one epoch."""

    spec: BufferedWindows
    state: StateStore
    epoch: EpochContext
    horizons: Horizons

    def of(self, ports: list[Came]) -> pa.Table:
        """What has changed of the groups that show something in this epoch."""
        spec, came = self.spec, list(map(_New.of, ports))
        asked = self._asked(came)
        if len(asked):
            output = self._changed(asked, came)
        else:
            output = spec.output_schema().empty_table()
            for each in came:
                each.port.waiting.put(self.state, pa.concat_tables([each.new, each.waited]))
        for seen in spec.seen:
            self.state.timeline(seen.layout).forget_due(self.horizons.shut)
        spec.timers.report(self.state, self.epoch)
        return output

    # -- which groups ----------------------------------------------------------------------------------

    def _asked(self, came: list[_New]) -> pa.Table:
        """The groups that show something now. What is to be shown later is noted."""
        spec, at = self.spec, self.horizons
        due = spec.timers.take(self.state, self.epoch.time)
        asked = [due.filter(pa.array(ends_of(due) > at.shut_before))]
        waited = pa.concat_tables([each.groups(each.waited, spec.identity) for each in came])
        asked.append(waited.filter(pa.array(self._must(ends_of(waited)))))
        new = distinct(pa.concat_tables([each.groups(each.new, spec.identity) for each in came]))
        ends = ends_of(new)
        must = self._must(ends)
        asked.append(new.filter(pa.array(must)))
        waits = ((ends <= at.before) & ~must, (ends > at.upto) & ~must)
        ended, ahead = (new.filter(pa.array(where)) for where in waits)
        asked += spec.timers.wait(spec.trigger, ended, ahead, self.state, self.epoch.time)
        return distinct(pa.concat_tables(asked))

    def _must(self, ends: Ints) -> Mask:
        """Whose window ends in this epoch, or can change no more after it."""
        at = self.horizons
        must: Mask = (ends > at.before) & (ends <= at.upto) | (ends <= at.shut)
        return must

    # -- what they show --------------------------------------------------------------------------------

    def _changed(self, asked: pa.Table, came: list[_New]) -> pa.Table:
        before, after = [], []
        for each, seen in zip(came, self.spec.seen, strict=True):
            old = self._held(seen, asked)
            fresh = self._released(each, asked)
            whole = pa.concat_tables([old, fresh])
            self._see(each.port, seen, old, fresh, whole)
            before.append(each.port.as_given(old))
            after.append(each.port.as_given(whole))
        shown = [self._given(tuple(rows), weight) for rows, weight in ((before, -1), (after, 1))]
        return self._shown(summed(pa.concat_tables(shown)))

    def _held(self, kept: WaitingRows, asked: pa.Table) -> pa.Table:
        """The rows of the groups ``asked`` that ``kept`` has."""
        asked = contiguous(asked)
        keys = [single(asked.column(name)) for name in asked.column_names if name != END]
        renamed = pa.table([asked.column(END), *keys], names=[END, *kept.keys])
        ends, hashes = ends_of(renamed), kept.hashes(renamed)
        order = by_time_order(ends, hashes)
        table = self.state.timeline(kept.layout)
        found = table.gather(ends[order], hashes[order], keys, order)
        names = [f.name for f in kept.layout.identity if f.name not in kept.keys]
        of = pa.array(order[found.queries])
        columns = {name: key.take(of) for name, key in zip(kept.keys, keys, strict=True)}
        columns |= {name: found.column(name) for name in (*names, WEIGHT)}
        return summed(pa.table([columns[n] for n in kept.schema.names], schema=kept.schema))

    def _released(self, came: _New, asked: pa.Table) -> pa.Table:
        """The rows of the groups ``asked`` that were not seen; all others wait on."""
        identity, waiting = self.spec.identity, came.port.waiting
        stored = self._held(waiting, asked)
        waiting.put(self.state, _negative(stored))
        rows = pa.concat_tables([came.waited, came.new])
        shows = places_in(asked, came.groups(rows, identity)) >= 0
        waiting.put(self.state, rows.filter(pa.array(~shows)))
        return pa.concat_tables([stored, rows.filter(pa.array(shows))])

    def _see(
        self, port: BufferedPort, seen: WaitingRows, old: pa.Table, fresh: pa.Table, whole: pa.Table
    ) -> None:
        """``fresh`` rows count from now on; those that no Top-N can show any more are not kept."""
        inner = self.spec.inner
        if not port.ordered or not isinstance(inner, Choosing):
            seen.put(self.state, fresh)
            return
        hopeless = np.ones(len(whole), np.bool_)
        if len(whole):
            hopeless[inner.promising(whole.drop_columns([DUE, WEIGHT]))] = False
        seen.put(self.state, fresh.filter(pa.array(~hopeless[len(old) :])))
        seen.put(self.state, _negative(old.filter(pa.array(hopeless[: len(old)]))))

    def _given(self, rows: tuple[pa.Table, ...], weight: int) -> pa.Table:
        """What the inner operator gives of ``rows``, each with ``weight``."""
        given = self.spec.inner.step(rows, self.state.scratch(), self.epoch)
        given = given.select([name for name in given.column_names if name != KIND_COLUMN])
        return given.append_column(WEIGHT, pa.array(np.full(len(given), weight, np.int64)))

    def _shown(self, changes: pa.Table) -> pa.Table:
        """Rows by their weights, as +I and -D, window by window; what goes before what comes."""
        weights = vector(single(changes.column(WEIGHT))).values if len(changes) else np.zeros(0, np.int64)
        ends = self.spec.window_ends(changes)
        rows = np.repeat(np.arange(len(changes)), np.abs(weights))
        order = rows[np.lexsort((weights[rows] > 0, ends[rows]))]
        kinds = np.where(weights[order] > 0, RowKind.INSERT, RowKind.DELETE).astype(np.int8)
        shown = changes.take(pa.array(order)).append_column(KIND_COLUMN, to_arrow(Vec(kinds), pa.int8()))
        return self.spec.given(shown, ends[order], self.epoch)


def _negative(rows: pa.Table) -> pa.Table:
    """``rows`` as taken back."""
    weights = to_arrow(Vec(-vector(single(rows.column(WEIGHT))).values), pa.int64()) if len(rows) else None
    return rows if weights is None else rows.set_column(rows.schema.get_field_index(WEIGHT), WEIGHT, weights)
