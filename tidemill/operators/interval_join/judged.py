"""Outer interval joins with a condition that another operator evaluates, in two operators.

``CandidatesSpec`` emits every pair within the bounds, and every row of an outer side. The operator above
filters the pairs by the condition. ``JudgedSpec`` emits the remaining pairs, and rows of outer sides without
a pair when their wait ends. Both belong to one join, and have the same partitions::

    candidates -> (pairs that pass, all single rows) -> judged

A candidate has the key, the output columns of both sides, and for each side the row's number and the end of
its wait. A single row has the columns of its side; the others are NULL. ``$wm``: the watermark at which the
later row came; the second operator adds the join's delay.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, hashes_of, with_types
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.arrived import MICROSECONDS, Arrived, Met, Pairs
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.operators.interval_join.shown import Shown
from tidemill.operators.interval_join.step import find_pairs
from tidemill.operators.interval_join.waiting import Waiting
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.store import StateStore

ROWS = ("$row0", "$row1")
"""Per side the number of the candidate's row; both are there in a pair."""
ENDS = ("$end0", "$end1")
"""Until when the row is waited for, in ms; ``NONE`` where it can match nothing."""
_NUMBER = pa.int64()


def key_columns(count: int) -> tuple[str, ...]:
    return tuple(f"$k{i}" for i in range(count))


@dataclass(frozen=True, kw_only=True)
class CandidatesSpec:
    """The pairs of ``join`` that its kernel lets through, and the rows of its outer sides."""

    join: IntervalShape

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"candidates {self.join.fingerprint}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return output_schema(candidate_columns(self.join), timed=True)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        epoch_pairs = find_pairs(self.join, state, epoch, inputs)
        parts = [self._pairs(pairs) for pairs in epoch_pairs.pairs]
        for number in (0, 1):
            if self.join.outer[number]:
                able, unable = epoch_pairs.able[number], epoch_pairs.unable[number]
                parts.append(self._rows(number, able, able.times + self.join.waits[number]))
                parts.append(self._rows(number, unable, np.full(len(unable), NONE, np.int64)))
        return pa.concat_tables(parts)

    def _pairs(self, pairs: Pairs) -> pa.Table:
        join = self.join
        columns = {name: pairs.column(name) for side in join.sides for name in side.output}
        names = key_columns(len(join.left.keys))
        columns |= {k: pairs.column(c) for k, c in zip(names, join.left.keys, strict=True)}
        own = Met(pairs.arrived, pairs.rows)
        for number, rows in enumerate((own, pairs.found) if pairs.side == 0 else (pairs.found, own)):
            columns[ROWS[number]] = _ints(rows.ints(ROW))
            times = rows.ints(join.times[number]) // MICROSECONDS
            columns[ENDS[number]] = _ints(times + join.waits[number])
        return self._table(columns, pairs.marks)

    def _rows(self, number: int, rows: Arrived, ends: Ints) -> pa.Table:
        side = self.join.sides[number]
        columns = {name: rows.columns[name] for name in side.output}
        columns |= {k: rows.columns[c] for k, c in zip(key_columns(len(side.keys)), side.keys, strict=True)}
        columns |= {ROWS[number]: _ints(rows.numbers), ENDS[number]: _ints(ends)}
        return self._table(columns, rows.marks)

    def _table(self, columns: dict[str, pa.Array], marks: Ints) -> pa.Table:
        schema = self.output_schema()
        columns = {**columns, WATERMARK_COLUMN: _ints(marks)}
        arrays = [columns[f.name] if f.name in columns else pa.nulls(len(marks), f.type) for f in schema]
        return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True, kw_only=True)
class JudgedSpec:
    """``join`` from the candidates that passed the condition."""

    join: IntervalShape

    @property
    def delay(self) -> int:
        """The delay of the output's watermark behind the inputs' watermark in ms."""
        return self.join.delay

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"judged {self.join.fingerprint}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return self.join.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        join, output = self.join, Shown(self.join)
        every = _Candidates.of(join, table)
        pairs = every.where(every.there(0) & every.there(1))
        output.pairs([pairs.columns[n] for side in join.sides for n in side.output], pairs.marks)
        for number in (0, 1):
            if join.outer[number]:
                alone = every.where(every.there(number) & ~every.there(1 - number))
                alone = alone.where(~np.isin(alone.ints(ROWS[number]), pairs.ints(ROWS[number])))
                self._wait(output, Waiting.of(join, number, state), alone, pairs)
                _show_ended(output, Waiting.of(join, number, state), epoch.watermark)
        return output.table(epoch.epoch)

    def _wait(self, output: Shown, waiting: Waiting, alone: _Candidates, pairs: _Candidates) -> None:
        """Stores the rows without a pair, and removes stored rows that have a pair now. Rows that cannot
        match are emitted at once."""
        number = waiting.number
        side = self.join.sides[number]
        ends = alone.ints(ENDS[number])
        lost = alone.where(ends == NONE)
        output.alone(number, {n: lost.columns[n] for n in side.output}, lost.marks)
        new = alone.where(ends != NONE)
        columns = {**new.columns, **dict(zip(side.keys, new.keys, strict=True))}
        waiting.put(new.ints(ENDS[number]), new.hashes, new.ints(ROWS[number]), new.marks, columns)
        waiting.remove(pairs.ints(ENDS[number]), pairs.hashes, pairs.ints(ROWS[number]), pairs.keys)


def _show_ended(output: Shown, waiting: Waiting, watermark: int) -> None:
    ended = waiting.ended(watermark)
    if ended is not None:
        output.alone(waiting.number, *ended)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """``keys``: the columns that both sides have in common."""

    columns: dict[str, pa.Array]
    keys: list[pa.Array]
    hashes: Hashes
    marks: Ints

    @classmethod
    def of(cls, join: IntervalShape, table: pa.Table) -> _Candidates:
        table = contiguous(with_types(table, dict(candidate_columns(join))))
        columns = {name: single(table.column(name)) for name, _ in candidate_columns(join)}
        keys = [columns[k] for k in key_columns(len(join.left.keys))]
        marks = vector(single(table.column(WATERMARK_COLUMN))).values
        return cls(columns, keys, hashes_of(table, keys), marks)

    def there(self, number: int) -> Mask:
        """Which candidates have a row of the side."""
        return vector(self.columns[ROWS[number]]).mask()

    def ints(self, name: str) -> Ints:
        values: Ints = vector(self.columns[name]).values
        return values

    def where(self, chosen: Mask) -> _Candidates:
        """Some of the candidates."""
        rows = np.flatnonzero(chosen)
        picks = pa.array(rows)
        columns = {name: column.take(picks) for name, column in self.columns.items()}
        keys = [key.take(picks) for key in self.keys]
        return _Candidates(columns, keys, self.hashes[rows], self.marks[rows])


def candidate_columns(join: IntervalShape) -> tuple[tuple[str, pa.DataType], ...]:
    """Names and types of a candidate's columns, without its time."""
    keys = zip(key_columns(len(join.left.keys)), (f.type for f in join.left.key_fields), strict=True)
    output_columns = [(c, dict(side.columns)[c]) for side in join.sides for c in side.output]
    return (*keys, *output_columns, *((name, _NUMBER) for name in (*ROWS, *ENDS)))


def _ints(values: Ints) -> pa.Array:
    return to_arrow(Vec(values), _NUMBER)
