"""What works on whole windows, but shows them before their end too, or again after it.

``inner`` is what stands behind the gate (see ``gate``). A group is the rows of a window and of the keys that
rows are sent by. It shows when its window ends, and before that and after it as ``emission`` says: what its
rows give now, less what those give that it has shown before. So nothing of what was shown is kept, only rows:
those that are ``seen``, and those that wait to be (the port's own table). Both go when their window can
change no more; then it shows what it still had to.

Cost of an epoch: the groups that show something, with all their rows. Of rows that only come those that no
Top-N can show any more are not kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, weights_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import EpochContext, OperatorSpec
from tidemill.operators.rows.waiting import WaitingRows, each_copy, summed
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.triggers.emission import Emission, Horizons
from tidemill.operators.window.triggers.shown import distinct, places_in
from tidemill.operators.window.triggers.timers import Timers
from tidemill.operators.window.window_buffer import BufferedPort, Choosing, window_ends
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order


@dataclass(frozen=True, kw_only=True)
class EmittingBufferSpec:
    """``ends``: columns of the output with the end of the window, of which the first that is not NULL counts.
    ``inner`` gives no ``$seq``. The output has +I and -D."""

    inner: OperatorSpec
    ports: tuple[BufferedPort, ...]
    clock: Clock
    ends: tuple[str, ...]
    emission: Emission
    keeps_time: bool = False
    sequence: bool = False

    @property
    def delay(self) -> int:
        return self.emission.lateness

    @property
    def fingerprint(self) -> str:
        layouts = [port.waiting.layout.schema for port in self.ports]
        return hashlib.sha256(f"emitting {self.inner.fingerprint} {layouts}".encode()).hexdigest()[:16]

    @cached_property
    def identity(self) -> pa.Schema:
        """Of groups: the end of the window, and the keys as the first port names them."""
        first = self.ports[0]
        types = dict(first.columns)
        return pa.schema([pa.field(END, pa.int64()), *(pa.field(k, types[k]) for k in first.keys)])

    @cached_property
    def timers(self) -> Timers:
        return Timers(identity=self.identity)

    @cached_property
    def seen(self) -> tuple[WaitingRows, ...]:
        """Per port the rows that count in what was shown, by the end of their window."""
        return tuple(replace(port.waiting, name=f"{port.name}-seen") for port in self.ports)

    def output_schema(self) -> pa.Schema:
        fields = [f for f in self.inner.output_schema() if f.name != KIND_COLUMN]
        fields.append(pa.field(KIND_COLUMN, pa.int8()))
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence
        return pa.schema(fields + [pa.field(WATERMARK_COLUMN, pa.int64())] * self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """What has changed of the groups that show something in this epoch."""
        return _Step(self, state, epoch, self.emission.horizons(self.clock, epoch)).run(inputs)


@dataclass(frozen=True, slots=True)
class _Came:
    """Of one port: the epoch's rows that count, and those that have waited and whose window is over."""

    port: BufferedPort
    new: pa.Table
    waited: pa.Table

    def groups(self, rows: pa.Table, identity: pa.Schema) -> pa.Table:
        """The group of each of ``rows``."""
        columns = [rows.column(DUE), *(rows.column(name) for name in self.port.keys)]
        return pa.table(columns, names=identity.names).cast(identity)


@dataclass(frozen=True, slots=True)
class _Step:
    spec: EmittingBufferSpec
    state: StateStore
    epoch: EpochContext
    horizons: Horizons

    def run(self, inputs: tuple[pa.Table, ...]) -> pa.Table:
        spec = self.spec
        came = [self._came(port, table) for port, table in zip(spec.ports, inputs, strict=True)]
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

    def _came(self, port: BufferedPort, table: pa.Table) -> _Came:
        table = contiguous(with_types(table, dict(port.columns)))
        ends = port.ends(table)
        late = np.zeros(0, np.bool_)
        if len(table):
            marks = vector(single(table.column(WATERMARK_COLUMN))).values
            reached = self.spec.emission.judged(np.maximum(marks, self.epoch.before))
            late = self.spec.clock.instants(ends - 1) <= reached
        self.epoch.late.add(table, late)
        rows = np.flatnonzero(~late)
        chosen = table.take(pa.array(rows))
        new = port.waiting.weighted(chosen, ends[rows], weights_of(chosen))
        return _Came(port, new, port.waiting.take(self.state, self.horizons.upto))

    # -- which groups ----------------------------------------------------------------------------------

    def _asked(self, came: list[_Came]) -> pa.Table:
        """The groups that show something now. What is to be shown later is noted."""
        spec, at, emission = self.spec, self.horizons, self.spec.emission
        due = spec.timers.take(self.state, self.epoch.time)
        asked = [due.filter(pa.array(ends_of(due) > at.shut_before))]
        waited = pa.concat_tables([each.groups(each.waited, spec.identity) for each in came])
        asked.append(waited.filter(pa.array(self._must(ends_of(waited)))))
        new = distinct(pa.concat_tables([each.groups(each.new, spec.identity) for each in came]))
        ends = ends_of(new)
        must = self._must(ends)
        asked.append(new.filter(pa.array(must)))
        for chosen, delay in ((ends <= at.before, emission.late), (ends > at.upto, emission.early)):
            groups = new.filter(pa.array(chosen & ~must))
            if delay == 0:
                asked.append(groups)
            elif delay is not None:
                spec.timers.put(self.state, emission.due(self.epoch.time, delay), groups)
        return distinct(pa.concat_tables(asked))

    def _must(self, ends: Ints) -> Mask:
        """Whose window ends in this epoch, or can change no more after it."""
        at = self.horizons
        must: Mask = (ends > at.before) & (ends <= at.upto) | (ends <= at.shut)
        return must

    # -- what they show --------------------------------------------------------------------------------

    def _changed(self, asked: pa.Table, came: list[_Came]) -> pa.Table:
        before, after = [], []
        for each, seen in zip(came, self.spec.seen, strict=True):
            old = self._held(seen, asked)
            fresh = self._released(each, asked)
            whole = pa.concat_tables([old, fresh])
            self._see(each.port, seen, old, fresh, whole)
            before.append(self._rows(each.port, old))
            after.append(self._rows(each.port, whole))
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

    def _released(self, came: _Came, asked: pa.Table) -> pa.Table:
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

    def _rows(self, port: BufferedPort, rows: pa.Table) -> pa.Table:
        """As the inner operator gets them: what they add up to, changes in the order of contents."""
        whole = each_copy(summed(rows) if port.retracts else rows).drop_columns([DUE])
        if not port.retracts:
            return whole
        return whole.append_column(SEQUENCE_COLUMN, pa.array(np.arange(len(whole), dtype=np.int64)))

    def _given(self, rows: tuple[pa.Table, ...], weight: int) -> pa.Table:
        """What the inner operator gives of ``rows``, each with ``weight``."""
        given = self.spec.inner.step(rows, self.state.scratch(), self.epoch)
        given = given.select([name for name in given.column_names if name != KIND_COLUMN])
        return given.append_column(WEIGHT, pa.array(np.full(len(given), weight, np.int64)))

    def _shown(self, changes: pa.Table) -> pa.Table:
        """Rows by their weights, as +I and -D, window by window; what goes before what comes."""
        weights = vector(single(changes.column(WEIGHT))).values if len(changes) else np.zeros(0, np.int64)
        ends = window_ends(changes, self.spec.ends)
        rows = np.repeat(np.arange(len(changes)), np.abs(weights))
        order = rows[np.lexsort((weights[rows] > 0, ends[rows]))]
        columns = {name: changes.column(name).take(pa.array(order)) for name in changes.column_names}
        kinds = np.where(weights[order] > 0, RowKind.INSERT, RowKind.DELETE).astype(np.int8)
        columns[KIND_COLUMN] = to_arrow(Vec(kinds), pa.int8())
        columns[SEQUENCE_COLUMN] = pa.array((self.epoch.epoch << 32) + np.arange(len(order), dtype=np.int64))
        # Whatever works on by the window's time gets its row just before that time has come.
        last = self.spec.clock.instants(ends[order] - 1)
        columns[WATERMARK_COLUMN] = to_arrow(Vec(last - 1), pa.int64())
        schema = self.spec.output_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)


def _negative(rows: pa.Table) -> pa.Table:
    """``rows`` as taken back."""
    weights = to_arrow(Vec(-vector(single(rows.column(WEIGHT))).values), pa.int64()) if len(rows) else None
    return rows if weights is None else rows.set_column(rows.schema.get_field_index(WEIGHT), WEIGHT, weights)
