"""What works on whole windows: rows wait until the end of their window has come, and then go through at once.

``inner`` is an operator that takes any rows: a Top-N by window and key, a join on the window. It sees each
window once, all its rows together and nothing of it in state, so all that it gives stays. A row that comes
after the end of its window is late. What is kept of changes is what they add up to: what is taken back before
the window ends was never there.

Cost of an epoch: its rows, and those of the windows that end; the others are not looked at (see
``state.timeline``). Of rows that only come, those that no Top-N can show any more are not kept, and those
that are pushed out where they were read not even sent.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import contiguous, weights_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import HASH_COLUMN, EpochContext, OperatorSpec
from tidemill.operators.rows.waiting import WaitingRows, each_copy, summed
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.local import ROWS
from tidemill.operators.window.output import MICROSECONDS
from tidemill.state.run import DUE
from tidemill.state.store import StateStore


@runtime_checkable
class Choosing(Protocol):
    """An operator that shows some of its rows as they are; ``prunes``: others may push one out for good."""

    @property
    def prunes(self) -> bool: ...

    def promising(self, table: pa.Table) -> Ints:
        """The rows that it may show, whatever else comes."""
        ...


@dataclass(frozen=True, kw_only=True)
class BufferedPort:
    """``columns``: the row, (name, type); ``keys``: those that rows are sent by; ``end``: the end of the
    window, in local time. ``ordered``: rows only come, and carry ``$seq``; ``retracts``: they are changes,
    whose rows have no order but that of their contents."""

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    end: str
    ordered: bool = False
    retracts: bool = False

    @cached_property
    def waiting(self) -> WaitingRows:
        """Rows by the end of their window."""
        sequence = ((SEQUENCE_COLUMN, pa.int64()),) * self.ordered
        return WaitingRows(name=self.name, columns=(*self.columns, *sequence), keys=self.keys)

    def ends(self, table: pa.Table) -> Ints:
        """The end of each row's window, in ms."""
        if len(table) == 0:
            return np.zeros(0, np.int64)
        ends: Ints = vector(single(table.column(self.end))).values // MICROSECONDS
        return ends


@dataclass(frozen=True, kw_only=True)
class WindowBufferSpec:
    """``ends``: columns of the output with the end of the window, of which the first that is not NULL counts.
    ``inner`` gives no ``$seq``."""

    inner: OperatorSpec
    ports: tuple[BufferedPort, ...]
    clock: Clock
    ends: tuple[str, ...]
    keeps_time: bool = False
    sequence: bool = False

    @property
    def fingerprint(self) -> str:
        facts = f"window {self.inner.fingerprint} {[port.waiting.layout.schema for port in self.ports]}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        fields = [f for f in self.inner.output_schema() if f.name != KIND_COLUMN]
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence
        return pa.schema(fields + [pa.field(WATERMARK_COLUMN, pa.int64())] * self.keeps_time)

    @property
    def combinable(self) -> bool:
        """Whether rows that others of their window push out need not reach the kernel."""
        return isinstance(self.inner, Choosing) and self.inner.prunes and self.ports[0].ordered

    def combine(self, table: pa.Table) -> pa.Table:
        """The rows that are not pushed out, and how many each stands for (``$rows``), should they be late.

        Whether they are is decided by what came before the task, and so in one way for all rows of a window,
        but for those that came when the task itself had seen its end: these are late."""
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
        """Which rows came after the end of their window; ``before``: what had been reached before all."""
        if len(table) == 0:
            return np.zeros(0, np.bool_)
        marks = vector(single(table.column(WATERMARK_COLUMN))).values
        late: Mask = self.clock.instants(ends - 1) <= np.maximum(marks, before)
        return late

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """What the windows give that end in this epoch."""
        waits = [_Wait(self, port, state, epoch) for port in self.ports]
        due = tuple(wait.due(table) for wait, table in zip(waits, inputs, strict=True))
        if not any(map(len, due)):
            return self.output_schema().empty_table()
        return self._shown(self.inner.step(due, state.scratch(), epoch), epoch)

    def _shown(self, rows: pa.Table, epoch: EpochContext) -> pa.Table:
        """``rows`` window by window, as they would come one epoch after the other."""
        ends = window_ends(rows, self.ends)
        order = np.argsort(ends, kind="stable")
        columns = {name: rows.column(name).take(pa.array(order)) for name in rows.column_names}
        columns[SEQUENCE_COLUMN] = pa.array((epoch.epoch << 32) + np.arange(len(rows), dtype=np.int64))
        # Whatever works on by the window's time gets its row just before that time has come.
        last = self.clock.instants(ends[order] - 1)
        columns[WATERMARK_COLUMN] = to_arrow(Vec(last - 1), pa.int64())
        schema = self.output_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)


@dataclass(frozen=True, slots=True)
class _Wait:
    """One port in one epoch."""

    spec: WindowBufferSpec
    port: BufferedPort
    state: StateStore
    epoch: EpochContext

    def due(self, table: pa.Table) -> pa.Table:
        """The rows of the windows that end, as the inner operator gets them; the others are kept."""
        port, upto = self.port, self.spec.clock.ended(self.epoch.watermark)
        stored = port.waiting.take(self.state, upto)
        table = contiguous(with_types(table, dict(port.columns)))
        ends = port.ends(table)
        late = self.spec.late(table, ends, self.epoch.before)
        stands_for = vector(single(table.column(ROWS))).values if ROWS in table.column_names else None
        self.epoch.late.add(table, late, stands_for)
        self._keep(table, ends, np.flatnonzero(~late & (ends > upto)))
        ready = self._weighted(table, ends, np.flatnonzero(~late & (ends <= upto)))
        return self._whole(pa.concat_tables([stored, ready]))

    def _weighted(self, table: pa.Table, ends: Ints, rows: Ints) -> pa.Table:
        chosen = table.take(pa.array(rows))
        return self.port.waiting.weighted(chosen, ends[rows], weights_of(chosen))

    def _keep(self, table: pa.Table, ends: Ints, rows: Ints) -> None:
        inner = self.spec.inner
        if self.port.ordered and isinstance(inner, Choosing) and len(rows):
            chosen = table.drop_columns([HASH_COLUMN]).take(pa.array(rows))
            rows = rows[inner.promising(chosen)]
        self.port.waiting.put(self.state, self._weighted(table, ends, rows))

    def _whole(self, rows: pa.Table) -> pa.Table:
        """Rows as often as their weights say; of changes what they add up to, in the order of contents."""
        if not self.port.retracts:
            return each_copy(rows).drop_columns([DUE])
        whole = each_copy(summed(rows)).drop_columns([DUE])
        return whole.append_column(SEQUENCE_COLUMN, pa.array(np.arange(len(whole), dtype=np.int64)))


def window_ends(rows: pa.Table, columns: tuple[str, ...]) -> Ints:
    """In ms, by the first of ``columns`` that is not NULL."""
    if len(rows) == 0:
        return np.zeros(0, np.int64)
    ends: Ints = vector(pc.coalesce(*(single(rows.column(name)) for name in columns))).values // MICROSECONDS
    return ends
