"""Lookup joins over input with retractions: the result of a lookup is kept with its row.

The table may have changed when a row is retracted, but a -U or -D must retract exactly the rows that its +I
or +U emitted. So the lookup result of a row is stored until the row is retracted. A retraction takes the
result of an equal stored row. The rows of one lookup stay together (an ``instance``), so a retraction never
mixes the results of two lookups. A row that was never stored is retracted without a result.

Input: an inserted row once per row found (once with ``$there`` FALSE or NULL if none was found), a retraction
once. Output: the net change of the epoch, retractions first, so a row that came and went in the epoch is not
emitted. Operators by time above need every change, because a row may come in time and be retracted too late.
For them (``keeps_time``) all changes are emitted in the order of ``$row``, each with its own watermark.

State: every current row with its result. Cost: the epoch's rows, and the stored results of equal rows for
retractions.
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
from tidemill.operators.rows.keyed_values import KeyedValues, oldest_waiting
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

Columns = tuple[tuple[str, pa.DataType], ...]
ROW, THERE = "$row", "$there"
"""The number of the looked-up row in the epoch; whether the lookup found a row."""
_EPOCH = "$epoch"
_INSTANCE = (pa.field(_EPOCH, pa.int64()), pa.field(ROW, pa.int64()), pa.field(THERE, pa.bool_()))


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupJoinSpec:
    """``columns``: of the input row; some of them partition the input. ``found``: of the table. ``outer``:
    rows without a result are emitted, too."""

    columns: Columns
    found: Columns
    outer: bool
    sequence: bool = False
    keeps_time: bool = False

    @property
    def layout(self) -> Layout:
        keys, table_fields = (tuple(pa.field(*c) for c in part) for part in (self.columns, self.found))
        return Layout(name="found", keys=keys, values=(*_INSTANCE, *table_fields), additive=True)

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
        output = pa.table([columns[f.name] for f in schema], schema=schema)
        return output if self.outer else output.filter(sources.there.take(pa.array(sources.places)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """``places``: for each emitted row the index of its result in ``found``, the table's columns."""

    places: Ints
    found: dict[str, pa.Array]
    there: pa.Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instances:
    """The results of lookups. Instance ``i`` has the candidates ``order[starts[i]:starts[i] + counts[i]]``.
    ``owners``: the row of each instance."""

    order: Ints
    starts: Ints
    counts: Ints
    owners: Ints

    @classmethod
    def of(cls, owners: Ints, epochs: Ints, numbers: Ints) -> _Instances:
        """Groups candidates into instances, the oldest instance of an owner first."""
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
        """The retractions (of ``owners``, numbered ``asking``) that find an unused instance from before them.
        ``numbers``: of the instances; instances of earlier epochs have the smallest numbers."""
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
        has_instance = np.empty(len(order), np.bool_)
        has_instance[order] = fails == 0
        return np.flatnonzero(has_instance[count:])

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
    """The index of each row among the distinct rows."""
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
        """The rows to emit; a retraction once for each row that it retracts."""
        stored_owners, stored = self.distinct.held(kept, np.unique(self.owners[self.goes]))
        count = len(stored_owners)
        pool = self._pool(stored)
        instances = _Instances.of(
            np.concatenate([stored_owners, self.owners[self.comes]]),
            vector(pool[_EPOCH]).values,
            vector(pool[ROW]).values,
        )
        instance_of = self._taken(instances, vector(pool[ROW]).values, count)
        stays = np.ones(count + len(self.comes), np.bool_)
        _, gone = instances.candidates(instance_of[instance_of >= 0])
        stays[gone] = False
        self._change(kept, instances, stays, pool, count)
        position, candidates = instances.candidates(instance_of)
        every = self.spec.keeps_time
        comes = np.ones(len(self.comes), np.bool_) if every else stays[count:]
        is_shown = (candidates < count) | (candidates == len(stays)) | every
        rows = np.concatenate([self.goes[position[is_shown]], self.comes[comes]])
        table_rows = np.concatenate([candidates[is_shown], count + np.flatnonzero(comes)])
        if every:
            order = np.argsort(self._numbers[rows], kind="stable")
            rows, table_rows = rows[order], table_rows[order]
        nothing = {name: pa.nulls(1, kind) for name, kind in self.spec.found}
        table_columns = {name: pa.concat_arrays([pool[name], nothing[name]]) for name in nothing}
        there = pa.concat_arrays([pool[THERE], pa.array([False])])
        return rows, _Sources(places=table_rows, found=table_columns, there=there)

    def _taken(self, instances: _Instances, numbers: Ints, count: int) -> Ints:
        """For each retraction its instance, or -1. The first ``count`` instances were stored before the
        epoch."""
        asking = self.owners[self.goes]
        if not self.spec.keeps_time:
            return oldest_waiting(instances.owners, asking)
        own = self._numbers[self.goes]
        first = instances.order[instances.starts]
        numbers = np.where(first < count, NONE, numbers[first])
        served = instances.before(numbers, asking, own)
        served = served[np.argsort(own[served], kind="stable")]
        instance_of = np.full(len(asking), -1, np.int64)
        instance_of[served] = oldest_waiting(instances.owners, asking[served])
        return instance_of

    @property
    def _numbers(self) -> Ints:
        numbers: Ints = vector(single(self.table.column(ROW))).values
        return numbers

    def _pool(self, stored: pa.Table) -> dict[str, pa.Array]:
        """The results that may be retracted: stored results, then the epoch's results."""
        came = self.table.take(pa.array(self.comes))
        names = [f.name for f in self.spec.layout.values]
        now = to_arrow(Vec(np.full(len(came), self.epoch)), pa.int64())
        return {
            name: pa.concat_arrays(
                [single(stored.column(name)), now if name == _EPOCH else single(came.column(name))]
            )
            for name in names
        }

    def _change(
        self, kept: StateTable, instances: _Instances, stays: Mask, pool: dict[str, pa.Array], count: int
    ) -> None:
        """Removes retracted stored results, and stores the remaining new results."""
        stored = np.arange(len(stays)) < count
        change = np.flatnonzero(stays != stored)
        owners = np.empty(len(stays), np.int64)
        owners[instances.order] = np.repeat(instances.owners, instances.counts)
        values = [pool[f.name].take(pa.array(change)) for f in self.spec.layout.values]
        self.distinct.change(kept, owners[change], values, np.where(stored[change], -1, 1))
