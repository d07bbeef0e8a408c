"""The buffer before an operator on whole windows: rows wait until their window ends, then pass together.

``inner`` is that operator: a Top-N by window and key, or a join on the window. If a window is shown once, at
its end, ``inner`` gets all rows of the window in one step, without state, so its output is final. If a
trigger shows a window again, see ``buffer_changes``. A row that comes after the end of its window is late.
The buffer keeps the sum of the changes: a row that is taken back before the window ends leaves nothing.

Cost of an epoch: its rows, and the rows of the windows that end; other windows are not read (see
``state.timeline``). Below a Top-N over append-only input, the buffer drops rows that can no longer be among
the first N, and tasks do not send the rows that they can drop themselves.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import contiguous, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import HASH_COLUMN, EpochContext, KeepsRows, KeptRows, OperatorSpec
from tidemill.operators.rows.waiting import WaitingRows
from tidemill.operators.window.buffer_changes import Changes
from tidemill.operators.window.buffered_port import BufferedPort, Came, Choosing
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.local import ROWS
from tidemill.operators.window.output import MICROSECONDS
from tidemill.operators.window.store.partial_aggregates import END
from tidemill.operators.window.triggers.timers import Timers
from tidemill.operators.window.triggers.trigger import AT_END, Trigger
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class WindowBufferSpec:
    """``ends``: columns of the output with the end of the window, of which the first that is not NULL counts.
    ``inner`` gives no ``$seq``. If ``trigger`` shows windows again, the output has +I and -D."""

    inner: OperatorSpec
    ports: tuple[BufferedPort, ...]
    clock: Clock
    ends: tuple[str, ...]
    trigger: Trigger = AT_END
    keeps_time: bool = False
    sequence: bool = False

    @property
    def delay(self) -> int:
        return self.trigger.lateness

    @property
    def kept_rows(self) -> KeptRows:
        inner = self.inner.kept_rows if isinstance(self.inner, KeepsRows) else None
        return KeptRows(
            layouts=tuple(port.waiting.layout for port in self.ports),
            most=None if inner is None else inner.most,
            finds=not any(port.retracts for port in self.ports),
        )

    @property
    def fingerprint(self) -> str:
        layouts = [port.waiting.layout.schema for port in self.ports]
        facts = f"{'emitting' if self.trigger.repeats else 'window'} {self.inner.fingerprint} {layouts}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @cached_property
    def identity(self) -> pa.Schema:
        """Of groups, the rows of a window and of the keys that rows are sent by: the end of the window, and
        the keys as the first port names them."""
        first = self.ports[0]
        types = dict(first.columns)
        return pa.schema([pa.field(END, pa.int64()), *(pa.field(k, types[k]) for k in first.keys)])

    @cached_property
    def timers(self) -> Timers:
        """Of groups that show a change later than with its epoch."""
        return Timers(identity=self.identity)

    @cached_property
    def seen(self) -> tuple[WaitingRows, ...]:
        """Per port the rows that count in what was shown, by the end of their window."""
        return tuple(replace(port.waiting, name=f"{port.name}-seen") for port in self.ports)

    def output_schema(self) -> pa.Schema:
        fields = [f for f in self.inner.output_schema() if f.name != KIND_COLUMN]
        fields += [pa.field(KIND_COLUMN, pa.int8())] * self.trigger.repeats
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence
        return pa.schema(fields + [pa.field(WATERMARK_COLUMN, pa.int64())] * self.keeps_time)

    @property
    def combinable(self) -> bool:
        """Whether rows that others of their window push out need not reach the kernel."""
        prunes = isinstance(self.inner, Choosing) and self.inner.prunes and self.ports[0].ordered
        return prunes and not self.trigger.repeats

    def combine(self, table: pa.Table) -> pa.Table:
        """The rows that are not pushed out, and how many rows each stands for if it is late (``$rows``). The
        rows before the task decide whether a window is late, so they decide it alike for all its rows. Rows
        that came after the task itself had seen the window's end are late in any case."""
        assert isinstance(self.inner, Choosing)
        port = self.ports[0]
        table = contiguous(with_types(table, dict(port.columns)))
        ends = port.ends(table)
        late = self.late(table, ends, NONE)
        open_ = np.flatnonzero(~late)
        rows = table.drop_columns([HASH_COLUMN]).take(pa.array(open_))
        chosen = open_[self.inner.promising(rows)] if len(open_) else open_
        sizes = np.ones(len(table), np.int64)
        _, of = np.unique(ends[np.concatenate([chosen, open_])], return_inverse=True)
        windows, every = of[: len(chosen)], np.bincount(of[len(chosen) :])
        first = np.unique(windows, return_index=True)[1]
        sizes[chosen[first]] += every - np.bincount(windows)
        kept = np.sort(np.concatenate([chosen, np.flatnonzero(late)]))
        return table.take(pa.array(kept)).append_column(ROWS, pa.array(sizes[kept]))

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[WindowBufferSpec, pa.Table]:
        """Where some of the rows came combined, the others stand for themselves."""
        types = dict(self.ports[0].columns)
        ones = [with_types(t, types).append_column(ROWS, pa.array(np.ones(len(t), np.int64))) for t in raw]
        return self, pa.concat_tables([*ones, *combined])

    def late(self, table: pa.Table, ends: Ints, before: int) -> Mask:
        """Which rows came after their window was shut; ``before``: what had been reached before all."""
        if len(table) == 0:
            return np.zeros(0, np.bool_)
        marks = vector(single(table.column(WATERMARK_COLUMN))).values
        reached = self.trigger.judged(np.maximum(marks, before))
        late: Mask = self.clock.instants(ends - 1) <= reached
        return late

    def next_end(self, state: StateStore, ended: int) -> int | None:
        """See ``triggers.processing_time``."""
        found = (state.timeline(port.waiting.layout).earliest() for port in self.ports)
        return min((end for end in found if end is not None), default=None)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The output of the windows that end in this epoch, or the changes of the windows that are emitted in
        it."""
        at = self.trigger.horizons(self.clock, epoch)
        came = [self._came(*each, at.upto, state, epoch) for each in zip(self.ports, inputs, strict=True)]
        if self.trigger.repeats:
            return Changes(self, state, epoch, at).of(came)
        due = tuple(self._whole_windows(each, at.upto, state) for each in came)
        if not any(map(len, due)):
            return self.output_schema().empty_table()
        rows = self.inner.step(due, state.scratch(), epoch)
        ends = self.window_ends(rows)
        order = np.argsort(ends, kind="stable")
        return self.given(rows.take(pa.array(order)), ends[order], epoch)

    def _came(
        self, port: BufferedPort, table: pa.Table, upto: int, state: StateStore, epoch: EpochContext
    ) -> Came:
        table = contiguous(with_types(table, dict(port.columns)))
        ends = port.ends(table)
        late = self.late(table, ends, epoch.before)
        stands_for = vector(single(table.column(ROWS))).values if ROWS in table.column_names else None
        epoch.late.add(table, late, stands_for)
        return Came(port, table, ends, np.flatnonzero(~late), port.waiting.take(state, upto))

    def _whole_windows(self, came: Came, upto: int, state: StateStore) -> pa.Table:
        """The rows of the windows that end, as the inner operator gets them; the others are kept."""
        port, over = came.port, came.ends[came.rows] <= upto
        waiting = came.rows[~over]
        if port.ordered and isinstance(self.inner, Choosing) and len(waiting):
            chosen = came.table.drop_columns([HASH_COLUMN]).take(pa.array(waiting))
            waiting = waiting[self.inner.promising(chosen)]
        port.waiting.put(state, came.weighted(waiting))
        return port.as_given(pa.concat_tables([came.waited, came.weighted(came.rows[over])]))

    def window_ends(self, rows: pa.Table) -> Ints:
        """The end of the window of each row of the output, in ms."""
        if len(rows) == 0:
            return np.zeros(0, np.int64)
        columns = (single(rows.column(name)) for name in self.ends)
        ends: Ints = vector(pc.coalesce(*columns)).values // MICROSECONDS
        return ends

    def given(self, rows: pa.Table, ends: Ints, epoch: EpochContext) -> pa.Table:
        """The output: ``rows`` of windows in the order of their ``ends``, as they would come one epoch after
        the other."""
        columns = {name: rows.column(name) for name in rows.column_names}
        columns[SEQUENCE_COLUMN] = pa.array((epoch.epoch << 32) + np.arange(len(rows), dtype=np.int64))
        # Whatever works on by the window's time gets its row just before that time has come.
        last = self.clock.instants(ends - 1)
        columns[WATERMARK_COLUMN] = to_arrow(Vec(last - 1), pa.int64())
        schema = self.output_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)
