"""The differences between the states in two savepoints, by table and row, read by the tasks of one query.

Operators are the same if they have the same id, and rows if they have the same keys and values. The hash
of a row's key determines its key group. So a task reads the same range of key groups of both savepoints, and
rows need no exchange. Cost: a read of both; a task holds its range of a table in memory.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.values import rows_same
from tidemill.connectors.task_frames import assigned
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import StateError
from tidemill.runtime.state_tables.naming import (
    PARTITION,
    OperatorState,
    StateColumn,
    StoredTable,
    told_layout,
)
from tidemill.state.layout import Layout
from tidemill.state.slices import Slice
from tidemill.state.storage import StateFiles
from tidemill.state.whole_table import live_rows
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_schema

NAME = "differences"
FIELDS = tuple(
    Field(name, STRING) for name in ("operator", "table_name", "change", "key_text", "first", "second")
)
_FIRST, _SECOND, _CHANGED = "ONLY IN FIRST", "ONLY IN SECOND", "CHANGED"
_TELLING = {"key", "value"}
Change = tuple[str, str, str | None, str | None]
"""What has changed of a row, its key, and what either side has."""
Parts = list[tuple[str, int, int]]
Names = tuple[tuple[str, str, bool], ...]
"""Of columns the stored names, those for people, and whether they tell rows apart."""
Side = tuple[Layout | None, Parts]
"""The layout of a table as its query has it, and where its rows are."""
Task = tuple[str, str, str, Names, Side, Side]
"""Operator, table, its stored name, its columns, and either savepoint."""


def tasks_of(
    first: Iterable[OperatorState], second: Iterable[OperatorState], files: tuple[StateFiles, StateFiles]
) -> Iterator[Task]:
    """One for each range of key groups of a table that both have in one piece."""
    before, after = ({operator.id: operator for operator in side} for side in (first, second))
    for key in (*before, *(key for key in after if key not in before)):
        sides = before.get(key), after.get(key)
        tables: dict[str, dict[int, StoredTable]] = {}
        for number, side in enumerate(sides):
            for table in side.tables if side is not None else ():
                tables.setdefault(table.stored, {})[number] = table
        name = next(side.name for side in sides if side is not None)
        slices = [() if side is None else _slices(side) for side in sides]
        bounds = sorted({bound for s in itertools.chain(*slices) for bound in (s.first, s.stop)})
        for stored, either in tables.items():
            columns, shown = _columns(either.values()), next(iter(either.values())).name
            layouts = [told_layout(files[n], either[n]) if n in either else None for n in range(2)]
            for low, high in itertools.pairwise(bounds):
                rows = [(layouts[n], _within(slices[n], low, high)) for n in range(2)]
                yield name, shown, stored, columns, rows[0], rows[1]


def _slices(operator: OperatorState) -> tuple[Slice, ...]:
    return tuple(s for _, parts in sorted(operator.slices.items()) for s in parts)


def _within(slices: Sequence[Slice], low: int, high: int) -> Parts:
    cut = ((s.manifest, max(s.first, low), min(s.stop, high)) for s in slices)
    return [(manifest, first, stop) for manifest, first, stop in cut if first < stop]


def _columns(tables: Iterable[StoredTable]) -> Names:
    """Where neither savepoint says what a column is for, all such columns tell rows apart."""
    found: dict[str, list[StateColumn]] = {}
    for column in (c for table in tables for c in table.columns if c.stored != PARTITION):
        found.setdefault(column.stored, []).append(column)
    return tuple(
        (stored, same[0].name, bool(_TELLING & (roles := {c.role for c in same})) or roles == {""})
        for stored, same in found.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """``now``: of either savepoint, as of ``live_rows``; ``wanted``: fields to give, in order."""

    files: tuple[StateFiles, StateFiles]
    now: tuple[int, int]
    wanted: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_schema(FIELDS)
        try:
            for operator, table, stored, names, *sides in assigned(batches):
                held = [self._rows(side, stored, *sides[side], names) for side in range(2)]
                rows = [(operator, table, *found) for found in _differing(held[0], held[1], names)]
                columns = zip(*rows, strict=True) if rows else [[]] * len(FIELDS)
                made = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
                yield from pa.table(made, schema=schema).select(list(self.wanted)).to_batches()
        except StateError as e:
            raise WorkerError(e) from e

    def _rows(self, side: int, stored: str, layout: Layout | None, parts: Parts, names: Names) -> pa.Table:
        slices = [Slice(*part) for part in parts]
        files, now = self.files[side], self.now[side]
        pieces = list(live_rows(files, slices, stored, now, layout)) if slices else []
        if not pieces:
            return pa.table({})
        table = pa.concat_tables(pieces)
        return table.select([name for name, *_ in names if name in table.column_names])


def _differing(first: pa.Table, second: pa.Table, names: Names) -> Iterator[Change]:
    """Of rows that changed only the columns that did."""
    sides = [side for side in (first, second) if side.num_columns]
    if not sides:
        return
    both = pa.concat_tables(sides, promote_options="permissive").combine_chunks()
    labels = {stored: label for stored, label, _ in names}
    keys = [stored for stored, _, tells in names if tells and stored in both.column_names]
    payload = [stored for stored in both.column_names if stored not in keys]
    groups = group_rows(*_identity(both, keys))
    heads, last = groups.heads, groups.order[groups.starts + groups.sizes - 1]
    paired = groups.sizes > 1
    changed = _changed(both, payload, heads, last) & paired[None, :]
    shows = ~paired | changed.any(axis=0)
    for place in np.flatnonzero(shows):
        old, new = int(heads[place]), int(last[place])
        key = _text(both, keys, old, labels)
        if paired[place]:
            picked = [name for name, mask in zip(payload, changed, strict=True) if mask[place]]
            yield _CHANGED, key, _text(both, picked, old, labels), _text(both, picked, new, labels)
        elif old < len(first):
            yield _FIRST, key, _text(both, payload, old, labels), None
        else:
            yield _SECOND, key, None, _text(both, payload, old, labels)


def _identity(both: pa.Table, keys: Sequence[str]) -> tuple[Any, list[pa.Array]]:
    columns = [single(both.column(name)) for name in keys]
    return hash_columns(columns, len(both)), columns


def _changed(both: pa.Table, payload: Sequence[str], heads: Ints, last: Ints) -> Mask:
    """By column and row."""
    found = np.zeros((len(payload), len(heads)), np.bool_)
    for place, name in enumerate(payload):
        column = [single(both.column(name))]
        found[place] = ~rows_same(column, heads, column, last)
    return found


def _text(table: pa.Table, names: Sequence[str], row: int, labels: Mapping[str, str]) -> str:
    values = {labels[name]: table.column(name)[row].as_py() for name in names}
    return json.dumps(values, default=str, ensure_ascii=False)
