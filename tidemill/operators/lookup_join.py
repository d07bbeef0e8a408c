"""Rows that may go again, with what a table had for them: what was found for a row stays with it.

The table may say something else by the time a row goes; a -U or -D must take back the very rows that its +I
or +U gave. So all that was found for a row is kept until it goes: a row that goes takes back what was found
for an equal row. What was looked up for one row at one time stays together (an ``instance``), so that a row
never takes back a mixture of two answers. A row that was never there goes with nothing found.

The input: rows that come once for each row found (once with ``$there`` FALSE or NULL where none was), rows
that go once. The output is the net change of the epoch, what goes before what comes: a row that came and went
in it is not shown. What works by time above judges each change by when it came: a row may come in time and
go too late. So there (``keeps_time``) all changes are shown, in the order of ``$row``, each behind its own
watermark. State: every row that is there with what was found. Cost: the epoch's rows, and for those that go
what is kept for equal rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import contiguous, hashes_of, weights_of, with_types
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.grouped import segmented_accumulate
from tidemill.operators.rows.keyed_values import KeyedValues, first_come
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

Columns = tuple[tuple[str, pa.DataType], ...]
ROW, THERE = "$row", "$there"
"""Which of the epoch's rows it was that was looked up; whether something was found for it."""
_EPOCH = "$epoch"
_INSTANCE = (pa.field(_EPOCH, pa.int64()), pa.field(ROW, pa.int64()), pa.field(THERE, pa.bool_()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoinSpec:
    """``columns``: what a row is, some of which it is sent by; ``found``: the table's; ``outer``: rows for
    which nothing was found are shown, too."""

    columns: Columns
    found: Columns
    outer: bool
    sequence: bool = False
    keeps_time: bool = False

    @property
    def layout(self) -> Layout:
        keys, found = (tuple(pa.field(*c) for c in part) for part in (self.columns, self.found))
        return Layout(name="found", keys=keys, values=(*_INSTANCE, *found), additive=True)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"lookup-join {self.layout.schema} {self.outer}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        columns = (*self.columns, *self.found)
        return output_schema(columns, kinds=True, sequence=self.sequence, timed=self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        schema = self.output_schema()
        if len(table) == 0:
            return schema.empty_table()
        table = contiguous(with_types(table, dict((*self.columns, *self.found))))
        there = pc.fill_null(single(table.column(THERE)), False)
        table = table.set_column(table.schema.get_field_index(THERE), THERE, there)
        rows, sources = _Step.of(self, table, epoch.epoch).run(state.table(self.layout))
        picks = pa.array(rows)
        columns = {name: single(table.column(name)).take(picks) for name in schema.names}
        columns |= {name: column.take(pa.array(sources.places)) for name, column in sources.found.items()}
        shown = pa.table([columns[f.name] for f in schema], schema=schema)
        return shown if self.outer else shown.filter(sources.there.take(pa.array(sources.places)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """``places`` in ``found``, the table's columns of all candidates: per row to show what is beside it."""

    places: Ints
    found: dict[str, pa.Array]
    there: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instances:
    """``rows``: candidates, those of instance ``i`` are ``counts[i]`` of ``order`` from ``starts[i]`` on;
    ``owners``: whose instance it is."""

    order: Ints
    starts: Ints
    counts: Ints
    owners: Ints

    @classmethod
    def of(cls, owners: Ints, epochs: Ints, numbers: Ints) -> _Instances:
        """The oldest of an owner first."""
        order = np.lexsort((numbers, epochs, owners))
        sorted_by = [column[order] for column in (owners, epochs, numbers)]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = np.any([c[1:] != c[:-1] for c in sorted_by], axis=0)
        starts = np.flatnonzero(fresh)
        return cls(
            order=order,
            starts=starts,
            counts=np.diff(starts, append=len(order)),
            owners=sorted_by[0][starts],
        )

    def before(self, numbers: Ints, owners: Ints, asking: Ints) -> Ints:
        """Which rows that go (of ``owners``, numbered ``asking``) find an instance that came before them and
        that none has taken; ``numbers``: of the instances, those of earlier epochs the least."""
        count = len(self.owners)
        moves = np.concatenate([np.ones(count, np.int64), np.full(len(asking), -1, np.int64)])
        whose = np.concatenate([self.owners, owners])
        order = np.lexsort((np.concatenate([numbers, asking]), whose))
        starts = np.flatnonzero(np.diff(whose[order], prepend=-1))
        left = segmented_accumulate(np.add, moves[order], starts)
        missed = segmented_accumulate(np.maximum, np.maximum(-left, 0), starts)
        fails = missed.copy()
        fails[1:] -= missed[:-1]
        fails[starts] = missed[starts]
        found = np.empty(len(order), np.bool_)
        found[order] = fails == 0
        return np.flatnonzero(found[count:])

    def candidates(self, instances: Ints) -> tuple[Ints, Ints]:
        """Pairs of a position in ``instances`` and a candidate of that instance; -1 has one, the last."""
        counts, starts = np.append(self.counts, 1)[instances], np.append(self.starts, -1)[instances]
        position = np.repeat(np.arange(len(instances)), counts)
        within = np.arange(len(position)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = starts[position] + within
        return position, np.where(instances[position] < 0, len(self.order), np.append(self.order, 0)[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    spec: LookupJoinSpec
    table: pa.Table
    epoch: int
    distinct: KeyedValues
    owners: Ints
    """Per row its place among the distinct ones."""
    comes: Ints
    goes: Ints

    @classmethod
    def of(cls, spec: LookupJoinSpec, table: pa.Table, epoch: int) -> _Step:
        keys = [single(table.column(name)) for name, _ in spec.columns]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        owners = np.empty(len(table), np.int64)
        owners[groups.order] = groups.ids()
        heads = pa.array(groups.heads)
        weights = weights_of(table)
        going = np.zeros(len(table), np.bool_) if weights is None else weights < 0
        return cls(
            spec=spec,
            table=table,
            epoch=epoch,
            distinct=KeyedValues(hashes=hashes[groups.heads], keys=[k.take(heads) for k in keys]),
            owners=owners,
            comes=np.flatnonzero(~going),
            goes=np.flatnonzero(going),
        )

    def run(self, kept: StateTable) -> tuple[Ints, _Sources]:
        """The rows to show, those that go once for each row they take back."""
        held_by, held = self.distinct.held(kept, np.unique(self.owners[self.goes]))
        count = len(held_by)
        pool = self._pool(held)
        instances = _Instances.of(
            np.concatenate([held_by, self.owners[self.comes]]),
            vector(pool[_EPOCH]).values,
            vector(pool[ROW]).values,
        )
        taken = self._taken(instances, vector(pool[ROW]).values, count)
        stays = np.ones(count + len(self.comes), np.bool_)
        _, gone = instances.candidates(taken[taken >= 0])
        stays[gone] = False
        self._change(kept, instances, stays, pool, count)
        position, candidates = instances.candidates(taken)
        every = self.spec.keeps_time
        comes = np.ones(len(self.comes), np.bool_) if every else stays[count:]
        shown = (candidates < count) | (candidates == len(stays)) | every
        rows = np.concatenate([self.goes[position[shown]], self.comes[comes]])
        places = np.concatenate([candidates[shown], count + np.flatnonzero(comes)])
        if every:
            order = np.argsort(self._numbers[rows], kind="stable")
            rows, places = rows[order], places[order]
        nothing = {name: pa.nulls(1, kind) for name, kind in self.spec.found}
        found = {name: pa.concat_arrays([pool[name], nothing[name]]) for name in nothing}
        there = pa.concat_arrays([pool[THERE], pa.array([False])])
        return rows, _Sources(places=places, found=found, there=there)

    def _taken(self, instances: _Instances, numbers: Ints, count: int) -> Ints:
        """Per row that goes the instance that goes with it, or -1; the first ``count`` were held before."""
        asking = self.owners[self.goes]
        if not self.spec.keeps_time:
            return first_come(instances.owners, asking)
        own = self._numbers[self.goes]
        first = instances.order[instances.starts]
        numbers = np.where(first < count, NONE, numbers[first])
        served = instances.before(numbers, asking, own)
        served = served[np.argsort(own[served], kind="stable")]
        taken = np.full(len(asking), -1, np.int64)
        taken[served] = first_come(instances.owners, asking[served])
        return taken

    @property
    def _numbers(self) -> Ints:
        numbers: Ints = vector(single(self.table.column(ROW))).values
        return numbers

    def _pool(self, held: pa.Table) -> dict[str, pa.Array]:
        """What may be taken back: what is held, then what came."""
        came = self.table.take(pa.array(self.comes))
        names = [f.name for f in self.spec.layout.values]
        now = to_arrow(Vec(np.full(len(came), self.epoch)), pa.int64())
        return {
            name: pa.concat_arrays(
                [single(held.column(name)), now if name == _EPOCH else single(came.column(name))]
            )
            for name in names
        }

    def _change(
        self, kept: StateTable, instances: _Instances, stays: Mask, pool: dict[str, pa.Array], count: int
    ) -> None:
        """What is held and does not stay goes, what came and stays is kept."""
        stored = np.arange(len(stays)) < count
        change = np.flatnonzero(stays != stored)
        owners = np.empty(len(stays), np.int64)
        owners[instances.order] = np.repeat(instances.owners, instances.counts)
        values = [pool[f.name].take(pa.array(change)) for f in self.spec.layout.values]
        self.distinct.change(kept, owners[change], values, np.where(stored[change], -1, 1))
