"""OVER in the order of event time: a row gets its final results when the watermark reaches its time.

Rows wait for the watermark. Then each row's results are computed from the rows before it and the rows of its
own time. A frame that begins with the partition is a running accumulator. Any other frame reads the key's
last rows, of which only rows that a later row can see are kept. Functions that look ahead are not supported
here.

Lateness is as in Flink. If a frame begins with the partition, a row is late if it is behind the watermark.
Otherwise it is late only if its key already emitted a row of its time or later. ``$wm`` tells the emitted
rows at the row's arrival, so lateness does not depend on the cut of epochs. If all frames are spans of time,
a key is forgotten once its last row is 1.5 times the longest span behind the watermark.

By processing time (``by_clock``) the time of a row is its epoch's time: no row waits or is late.

Cost of an epoch: its rows, the due rows, and the kept rows of their keys.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import END, NONE, WATERMARK_COLUMN
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import HASH_COLUMN, EpochContext, KeptRows
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.group_aggregate.per_record import values_after_each
from tidemill.operators.over.lateness import Dues, latest_emitted
from tidemill.operators.over.operator import OverFunction, evaluated
from tidemill.operators.rows.entries import Entries, entry_layout, load_entries, put_entries
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.rows.stored_before import Late
from tidemill.operators.rows.waiting import WaitingRows, each_copy
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.timeline import due_times

_MICROSECONDS = 1000
_KEY = "$key"
_FIRST = "$first"
_RANKS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})


@dataclass(frozen=True, kw_only=True)
class OverByTimeSpec:
    """- ``columns``: the row, (name, type).
    - ``time``: the time attribute among them, by which all ``functions`` are ordered.
    - ``lag``: the most rows that LAG looks back, None if a row determines it.
    - ``equal_in_time``: a row at the watermark's own time is not late, as in Flink's Deduplicate and unlike
      OVER.
    - ``late``: columns that rows stored earlier lack, and the epochs since which rows have them; None if
      columns go by position.
    """

    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    time: str
    functions: tuple[OverFunction, ...]
    lag: int | None = 0
    by_clock: bool = False
    state_ttl: int = 0
    sequence: bool = False
    keeps_time: bool = False
    equal_in_time: bool = False
    late: Late | None = None

    @property
    def fingerprint(self) -> str:
        facts = f"over-by-time {self.columns} {self.partition} {self.time} {self.functions} {self.lag}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @cached_property
    def waiting(self) -> WaitingRows:
        """Rows by the watermark that they are due at."""
        columns = (*self.columns, (SEQUENCE_COLUMN, pa.int64()))
        return WaitingRows(name="waiting", columns=columns, keys=self.partition, late=self.late)

    @property
    def kept_rows(self) -> KeptRows:
        """What calls look at is part of them: all rows have it."""
        looked_at = {a for f in self.functions for a in (*f.call.args, *(key.name for key in f.order))}
        layouts = [self.waiting.layout]
        layouts += [self.history] * bool(self.framed) + [self.forgetting] * (self.memory is not None)
        layouts += self.group.evolving if self.running else ()
        return KeptRows(layouts=tuple(layouts), needed=frozenset({self.time, *looked_at}))

    @cached_property
    def keys(self) -> tuple[pa.Field, ...]:
        types = dict(self.columns)
        return tuple(pa.field(name, types[name]) for name in self.partition)

    @cached_property
    def running(self) -> tuple[OverFunction, ...]:
        """What goes on from row to row."""
        return tuple(f for f in self.functions if f.frame.lower is None and f.call.function != "LAG")

    @cached_property
    def framed(self) -> tuple[OverFunction, ...]:
        """What looks at the key's last rows."""
        return tuple(f for f in self.functions if f not in self.running)

    @cached_property
    def seen(self) -> tuple[str, ...]:
        """The columns of the rows that are kept."""
        args = {a for f in self.framed for a in f.call.args} | {self.time}
        return tuple(name for name, _ in self.columns if name in args and name not in self.partition)

    @cached_property
    def history(self) -> Layout:
        types = dict(self.columns)
        values = tuple(pa.field(n, types[n]) for n in self.seen)
        return entry_layout("history", self.keys, values, self.state_ttl, self.late)

    @cached_property
    def forgetting(self) -> Layout:
        return Layout(name="forgetting", keys=self.keys, by_time=True)

    @property
    def by_watermark(self) -> bool:
        """Whether every row behind the watermark is late."""
        return any(f.frame.lower is None for f in self.functions)

    @property
    def back(self) -> int | None:
        """How many rows before it a row sees at most; None: all."""
        if self.lag is None:
            return None
        return max([self.lag, *(-(f.frame.lower or 0) for f in self.framed if f.frame.rows)])

    @property
    def span(self) -> int:
        """How far back in time a row sees, in ms."""
        lowest = max([-(f.frame.lower or 0) for f in self.framed if not f.frame.rows], default=0)
        return -(-lowest // _MICROSECONDS)

    @property
    def memory(self) -> int | None:
        """How long behind the watermark a key's last row is remembered, in ms; None: always."""
        spans = all(not f.frame.rows and f.frame.lower is not None for f in self.functions)
        return self.span * 3 // 2 if spans else None

    @cached_property
    def group(self) -> GroupAggregateSpec:
        """The running aggregation by key; its calls are named as the functions' columns."""
        return GroupAggregateSpec(
            keys=tuple((f.name, f.type) for f in self.keys),
            calls=tuple(_running_call(f.call) for f in self.running),
            per_record=True,
            state_ttl=self.state_ttl,
        )

    def output_schema(self) -> pa.Schema:
        fields = [pa.field(name, kind) for name, kind in self.columns]
        fields += [pa.field(f.call.name, f.call.result) for f in self.functions]
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence
        return pa.schema(fields + [pa.field(WATERMARK_COLUMN, pa.int64())] * self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The rows that are due, with their results."""
        state.now = epoch.time
        table = with_types(inputs[0], dict(self.columns))
        if self.by_clock:
            table = self._at(epoch.time, table)
            epoch = replace(epoch, watermark=epoch.time, before=NONE)
        return _Step(self, state, epoch).run(contiguous(by_arrival(table) if len(table) else table))

    def _at(self, now: int, table: pa.Table) -> pa.Table:
        times = to_arrow(
            Vec(np.full(len(table), now * _MICROSECONDS, np.int64)), dict(self.columns)[self.time]
        )
        table = table.set_column(table.schema.get_field_index(self.time), self.time, times)
        return table.append_column(WATERMARK_COLUMN, pa.array(np.full(len(table), NONE, np.int64)))


def _running_call(call: AggregateSpec) -> AggregateSpec:
    """Ranks count: rows, or times."""
    if call.function not in _RANKS:
        return call
    args = (_FIRST,) if call.function == "DENSE_RANK" else ()
    kinds = (pa.bool_(),) * len(args)
    return replace(call, function="COUNT", args=args, arg_types=kinds, result=pa.int64())


@dataclass(slots=True)
class _Step:
    spec: OverByTimeSpec
    state: StateStore
    epoch: EpochContext

    def run(self, table: pa.Table) -> pa.Table:
        spec, watermark = self.spec, self.epoch.watermark
        waiting = spec.waiting.take(self.state, watermark)
        forgotten = self._forgotten(watermark)
        if not (len(table) or len(waiting) or len(forgotten)):
            return spec.output_schema().empty_table()
        keys, numbers = self._keys(table, waiting, forgotten)
        own, waiting_numbers = numbers[: len(table)], numbers[len(table) : len(table) + len(waiting)]
        past = self._past(keys)
        dues, late = self._judged(table, own, self._dues(waiting, waiting_numbers), past)
        rows = spec.waiting.weighted(table, dues).append_column(_KEY, pa.array(own)).filter(pa.array(~late))
        ready = pa.array(due_times(rows) <= watermark)
        spec.waiting.put(self.state, rows.filter(pc.invert(ready)))
        due = pa.concat_tables([waiting.append_column(_KEY, pa.array(waiting_numbers)), rows.filter(ready)])
        due = self._in_order(each_copy(due))
        results = self._running(due, keys)
        if past is not None:
            results |= self._framed(due, keys, past)
        return self._shown(due, results)

    # -- which rows ------------------------------------------------------------------------------------

    def _forgotten(self, watermark: int) -> pa.Table:
        if self.spec.memory is None:
            return self.spec.history.schema.empty_table()
        return self.state.timeline(self.spec.forgetting).take_due(watermark)

    def _keys(self, *tables: pa.Table) -> tuple[Keys, Ints]:
        names = self.spec.partition
        columns = [pa.concat_arrays([single(t.column(n)) for t in tables]) for n in names]
        hashes = [hashes_of(tables[0], [single(tables[0].column(n)) for n in names])]
        hashes += [self.spec.waiting.hashes(t) for t in tables[1:]]
        return Keys.of(columns, np.concatenate(hashes))

    def _past(self, keys: Keys) -> Entries | None:
        """What is kept of the keys' rows; None if nothing is."""
        if not self.spec.framed:
            return None
        layout = self.spec.history
        return load_entries(layout, self.state.table(layout), keys.hashes, keys.columns)

    def _times(self, table: pa.Table) -> Ints:
        return _milliseconds(single(table.column(self.spec.time)))

    def _past_times(self, past: Entries) -> Ints:
        return _milliseconds(past.columns[self.spec.seen.index(self.spec.time)])

    def _dues(self, rows: pa.Table, keys: Ints) -> Dues:
        return Dues(keys=keys, times=self._times(rows), dues=due_times(rows))

    def _judged(self, table: pa.Table, keys: Ints, waiting: Dues, past: Entries | None) -> tuple[Ints, Mask]:
        """When each row is due, and whether it is late."""
        nothing = np.zeros(0, np.int64)
        marks = vector(single(table.column(WATERMARK_COLUMN))).values if len(table) else nothing
        marks, times = np.maximum(marks, self.epoch.before), self._times(table)
        dues = np.maximum(times, np.where(marks == END, END, marks + 1))
        if self.spec.by_clock:
            # A millisecond may have several epochs.
            return times, np.zeros(len(table), np.bool_)
        if self.spec.by_watermark or past is None:
            late = times < marks if self.spec.equal_in_time else times <= marks
        else:
            past_dues = Dues(keys=past.owners, times=self._past_times(past), dues=np.full(len(past), NONE))
            last = latest_emitted(
                past_dues.then(waiting).then(Dues(keys=keys, times=times, dues=dues)), keys, marks
            )
            late = times <= last
            if self.spec.memory is not None:
                late &= marks <= last + self.spec.memory
        self.epoch.late.add(table, late)
        return dues, late

    def _in_order(self, due: pa.Table) -> pa.Table:
        """By the watermark that made them due, then by time, then as they came."""
        if len(due) == 0:
            return due
        arrival = vector(due.column(SEQUENCE_COLUMN)).values
        return contiguous(due.take(pa.array(np.lexsort((arrival, self._times(due), due_times(due))))))

    # -- results ---------------------------------------------------------------------------------------

    def _running(self, due: pa.Table, keys: Keys) -> dict[OverFunction, pa.Array]:
        spec = self.spec
        if not spec.running or len(due) == 0:
            return {}
        owners = vector(due.column(_KEY)).values
        first, last = _peers(owners, self._times(due))
        there = first == np.arange(len(due))
        rows = due.append_column(_FIRST, pa.array(there, mask=~there))
        rows = rows.append_column(HASH_COLUMN, to_arrow(Vec(keys.hashes[owners]), pa.uint64()))
        values = values_after_each(spec.group, rows, self.state)
        return {
            f: value.take(pa.array(_shown_at(f, first, last))).cast(f.call.result)
            for f, value in zip(spec.running, values, strict=True)
        }

    def _framed(self, due: pa.Table, keys: Keys, past: Entries) -> dict[OverFunction, pa.Array]:
        """The results of frames that look at the key's last rows; keeps what later ones see."""
        spec = self.spec
        new = Entries(
            vector(due.column(_KEY)).values if len(due) else np.zeros(0, np.int64),
            vector(due.column(SEQUENCE_COLUMN)).values if len(due) else np.zeros(0, np.int64),
            [single(due.column(name)) for name in spec.seen],
            np.ones(len(due), np.int64),
            np.zeros(len(due), np.bool_),
        )
        rows = past.then(new)
        columns = dict(zip(spec.seen, rows.columns, strict=True))
        columns |= dict(zip(spec.partition, keys.take(rows.owners), strict=True))
        times = self._past_times(rows)
        dues = np.concatenate([np.full(len(past), NONE), due_times(due)])
        lives = self._lives(rows.owners, times, dues)
        values = evaluated(spec.framed, lives, columns, np.arange(len(rows))) if len(due) else []
        left = self._left(rows.owners, lives, times)
        put_entries(spec.history, self.state.table(spec.history), rows, left, keys.hashes, keys.columns)
        self._remember(new.owners, times[len(past) :], keys)
        return {f: v.slice(len(past)) for f, v in zip(spec.framed, values, strict=False)}

    def _lives(self, owners: Ints, times: Ints, dues: Ints) -> Ints:
        """A number per key, and per time that it was forgotten between two of its rows."""
        memory = self.spec.memory
        if memory is None or len(owners) == 0:
            return owners
        # As they are given: what comes after a key was forgotten may be of an earlier time.
        order = np.lexsort((np.arange(len(owners)), times, dues, owners))
        owner, time, due = owners[order], times[order], dues[order]
        # Rows of one time that are due together come together, however late.
        apart = (time[1:] != time[:-1]) | (due[1:] != due[:-1])
        forgotten = apart & (due[1:] != NONE) & (due[1:] - 1 > time[:-1] + memory)
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (owner[1:] != owner[:-1]) | forgotten
        lives = np.empty(len(order), np.int64)
        lives[order] = np.cumsum(fresh) - 1
        return lives

    def _left(self, owners: Ints, lives: Ints, times: Ints) -> Mask:
        """What later rows of the keys see."""
        spec, size = self.spec, len(owners)
        if spec.back is None or size == 0:
            return np.ones(size, np.bool_)
        order = np.lexsort((np.arange(size), times, lives, owners))
        owner, life, time = owners[order], lives[order], times[order]
        ends = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))
        last = np.repeat(ends, np.diff(ends, prepend=-1))
        # The last row of a key is kept in any case: it says what is late.
        is_visible = (last - np.arange(size) < max(spec.back, 1)) | (time >= time[last] - spec.span)
        is_visible &= life == life[last]
        if spec.memory is not None:
            is_visible &= time[last] >= self.epoch.watermark - spec.memory
        left = np.empty(size, np.bool_)
        left[order] = is_visible
        return left

    def _remember(self, owners: Ints, times: Ints, keys: Keys) -> None:
        """Wakes the keys of new rows when they may be forgotten."""
        memory, watermark = self.spec.memory, self.epoch.watermark
        if memory is None or len(owners) == 0 or watermark == END:
            return
        touched = np.unique(owners)
        last = np.full(len(keys.hashes), NONE, np.int64)
        np.maximum.at(last, owners, times)
        columns = {f.name: c for f, c in zip(self.spec.keys, keys.take(touched), strict=True)}
        wakes = np.maximum(last[touched] + memory, watermark) + 1
        self.state.timeline(self.spec.forgetting).put(wakes, keys.hashes[touched], columns)

    def _shown(self, due: pa.Table, results: dict[OverFunction, pa.Array]) -> pa.Table:
        schema = self.spec.output_schema()
        if len(due) == 0:
            return schema.empty_table()
        columns = [due.column(name) for name, _ in self.spec.columns]
        columns += [results[f] for f in self.spec.functions]
        if self.spec.sequence:
            columns.append(pa.array((self.epoch.epoch << 32) + np.arange(len(due), dtype=np.int64)))
        if self.spec.keeps_time:
            # What works on by time gets a row just before the watermark that made it due.
            columns.append(pa.array(due_times(due) - 1))
        return pa.table(columns, schema=schema)


def _milliseconds(column: pa.Array) -> Ints:
    times: Ints = vector(column).values // _MICROSECONDS if len(column) else np.zeros(0, np.int64)
    return times


def _peers(owners: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Per row the first and the last of its key's rows of its time; a key's rows are in order of time."""
    order = np.lexsort((times, owners))
    owner, time = owners[order], times[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (owner[1:] != owner[:-1]) | (time[1:] != time[:-1])
    starts = np.flatnonzero(fresh)
    sizes = np.diff(starts, append=len(order))
    first, last = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    first[order] = np.repeat(order[starts], sizes)
    last[order] = np.repeat(order[starts + sizes - 1], sizes)
    return first, last


def _shown_at(function: OverFunction, first: Ints, last: Ints) -> Ints:
    """The row whose running value each row shows."""
    if function.call.function == "RANK":
        return first
    whole = not function.frame.rows and function.call.function != "ROW_NUMBER"
    return last if whole else np.arange(len(first))
