"""Writes rows into the state of a savepoint: a new savepoint has them, the old one stays as it is.

Numbered, as they happen:

1. The old savepoint is compared with its checksums; its files are linked or copied to the new place.
2. Tasks, each with all rows of some partitions, write runs and a manifest a partition there, as an epoch
   does. Each checks that no key comes twice and that the records hold what they must (``invariants``).
3. Files that the new manifests do not name are removed.
4. ``savepoint.json`` is written: the new savepoint is there. Before that it is absent.

A row replaces the record of its key. Cost: the links, the rows, and what an epoch with these rows merges.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, single, vector
from tidemill.changelog.grouping import group_rows, sort_order
from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import NotSupportedError, StateError, TidemillError, ValidationError
from tidemill.files.storage import Storage
from tidemill.operators.group_aggregate.shape import RECORDS
from tidemill.runtime.checkpoint.directory import CheckpointDirectory, EpochCommit, recorded
from tidemill.runtime.checkpoint.savepoint import (
    MARK,
    STATE,
    Savepoint,
    check_empty,
    seal,
    unwritten,
)
from tidemill.runtime.state_tables.invariants import check_records, is_derived
from tidemill.runtime.state_tables.naming import OperatorState, StoredTable, state_files
from tidemill.state.layout import Layout
from tidemill.state.named_files import named_files
from tidemill.state.run import HASH, RunReader
from tidemill.state.slices import KEY_GROUP_BITS, KEY_GROUPS, Slice
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART = "part"
_TELLING = 100
Part = tuple[int, int, int, tuple[tuple[str, int, int], ...]]
"""A partition: its number, its first key group, the one after its last, its slices."""


def parts_of(operator: OperatorState) -> tuple[Part, ...]:
    """All key groups in order: the partitions that have state, and between them new ones."""
    held = sorted((slices[0].first, slices[-1].stop, n) for n, slices in operator.slices.items() if slices)
    found, at, free = list[Part](), 0, 1 + max((n for *_, n in held), default=-1)
    for first, stop, number in (*held, (KEY_GROUPS, KEY_GROUPS, -1)):
        if at < first:
            found.append((free, at, first, ()))
            free += 1
        if number >= 0:
            slices = tuple((s.manifest, s.first, s.stop) for s in operator.slices[number])
            found.append((number, first, stop, slices))
        at = stop
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWriter:
    """``columns``: the stored name of each given column; others than those of the layout are left out.
    ``parts``: see ``parts_of``. ``derived``: see ``invariants``."""

    root: Storage
    operator: str
    shown: str
    layout: Layout
    derived: tuple[str, ...]
    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    epoch: int
    now: int

    def route(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows with the place of their partition among ``parts``."""
        starts = np.array([first for _, first, _, _ in self.parts])
        for batch in batches:
            table = self._named(pa.Table.from_batches([batch]))
            groups = (self._hashes(table) >> np.uint64(64 - KEY_GROUP_BITS)).astype(np.int64)
            places = np.searchsorted(starts, groups, side="right") - 1
            yield batch.append_column(_PART, pa.array(places.astype(np.int32)))

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A token for each partition that has rows."""
        try:
            given = list(batches)
            if given:
                table = pa.Table.from_batches(given).combine_chunks()
                places = table.column(_PART).to_numpy()
                for place in np.unique(places):
                    rows = table.filter(pa.array(places == place)).drop_columns([_PART])
                    token = json.dumps(self._write(self.parts[place], self._named(rows)))
                    yield pa.record_batch([pa.array([token])], names=["token"])
        except TidemillError as e:
            raise WorkerError(e) from e

    def _named(self, table: pa.Table) -> pa.Table:
        """The stored columns, by their stored names and of their types; others are NULL."""
        own = dict(zip(self.columns, table.columns, strict=True))
        fields = (*self.layout.keys, *self.layout.columns)
        arrays = [own[f.name].cast(f.type) if f.name in own else pa.nulls(len(table), f.type) for f in fields]
        return pa.table(arrays, names=[f.name for f in fields])

    def _keys(self, table: pa.Table) -> list[pa.Array]:
        return [single(table.column(f.name)) for f in self.layout.keys]

    def _hashes(self, table: pa.Table) -> Hashes:
        return hash_columns(self._keys(table), len(table))

    def _write(self, part: Part, rows: pa.Table) -> dict[str, Any]:
        number, first, stop, slices = part
        rows = rows.take(pa.array(sort_order(self._hashes(rows))))
        keys, hashes = self._keys(rows), self._hashes(rows)
        if group_rows(hashes, keys).count < len(rows):
            raise ValidationError(f"Two rows for '{self.shown}' have the same key.")
        store = StateStore.open(
            self.root,
            self.operator,
            number,
            tuple(Slice(*s) for s in slices),
            self.epoch,
            groups=(first, stop),
            attempt=f"e{uuid.uuid4().hex[:8]}",
            now=self.now,
        )
        table = store.table(self.layout)
        found = table.lookup(hashes, keys)
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        stored = {name: found.array(name) for name in self.derived}
        check_records(columns, found.there, stored, self.shown)
        table.put(hashes, columns)
        return {"rows": len(rows), "part": number, "groups": [first, stop], "manifest": store.flush()}


@dataclass(slots=True, kw_only=True)
class SavepointSink:
    """``target``: where the new savepoint is to be."""

    savepoint: Savepoint
    operator: OperatorState
    target: Storage
    writer: StateWriter
    fields: tuple[Field, ...]
    _begun: bool = False

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        self.begin()
        names = [f"c{place}" for place in range(len(self.fields))]
        types = [f"{quote(n)} {spark_type(f.type)}" for n, f in zip(names, self.fields, strict=True)]
        routed = map_batches(frame.toDF(*names), self.writer.route, ", ".join([*types, f"{_PART} INT"]))
        return map_batches(
            routed.repartition(len(self.writer.parts), _PART), self.writer.write, "token STRING"
        )

    def begin(self) -> None:
        """Step 1. StateError where the old savepoint is not whole, or the place not empty."""
        check_empty(self.target)
        if not self.savepoint.is_published:
            what, epoch = self.savepoint.what, self.savepoint.epoch
            raise StateError(
                f"{what[0].upper()}{what[1:]} cannot be edited: whether its last epoch {epoch} has reached "
                "its sinks is not known",
                hint="Start its job where it was, and stop it: then it is known.",
            )
        self._begun = True
        self.savepoint.check_whole()  # 1
        try:
            for path in (*self.savepoint.state_files(), *self.savepoint.source_files()):
                self.target.take_in(self.savepoint.storage, path)
        except OSError as e:
            raise unwritten(self.target, e) from e

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """Steps 3 and 4; nothing is left where they fail. Not twice: a batch job publishes once."""
        try:
            self._publish(tokens)
        except BaseException:
            self.discard(epoch)
            raise

    def _publish(self, tokens: list[str]) -> None:
        commit = self._commit([json.loads(token) for token in tokens])
        files = StateFiles.open(self.target.below(STATE), f"the savepoint '{self.target.shown('')}'")
        try:
            CheckpointDirectory(self.target).make(self.savepoint.identity, commit)
            held = [s.manifest for parts in commit.slices.values() for part in parts.values() for s in part]
            named = named_files(files, held)
            for name in sorted({*files.names()} - {*named}):  # 3
                files.remove(name)
            made = {f"{STATE}/{name}": found for name, found in named.items()}
            seal(self.target, MARK, self.savepoint.identity, commit, made)  # 4
        except OSError as e:
            raise unwritten(self.target, e) from e

    def _commit(self, tokens: list[Mapping[str, Any]]) -> EpochCommit:
        before = self.savepoint.commit
        assert before is not None
        slices = dict(self.operator.slices)
        for token in tokens:
            slices[token["part"]] = (Slice(token["manifest"], *token["groups"]),)
        manifests = {**before.manifests, **recorded({self.operator.id: slices})}
        return replace(before, manifests=manifests, tokens={})

    def discard(self, epoch: int) -> None:
        if self._begun:
            self.target.remove_directory("")

    def finish(self) -> None:
        """Nothing is left to do."""


def hashed_by_keys(files: StateFiles, table: StoredTable, layout: Layout) -> bool:
    """Whether rows have the hash of their keys. The first rows of a run of each partition tell: all rows of
    an operator have their hashes from one exchange."""
    for entries in table.entries.values():
        for run in [next(entry.runs, None) for entry in entries]:
            if run is not None:
                rows = RunReader.of_run(files, run).table.slice(0, _TELLING).combine_chunks()
                hashes = hash_columns([single(rows.column(f.name)) for f in layout.keys], len(rows))
                if (hashes != vector(single(rows.column(HASH))).values).any():
                    return False
    return True


def sink_of(
    savepoint: Savepoint,
    operator: OperatorState,
    table: StoredTable,
    layout: Layout,
    target: Storage,
    fields: tuple[Field, ...],
) -> SavepointSink:
    """NotSupportedError where the table is not one whose rows can be written."""
    commit = savepoint.commit
    if commit is None or operator.kind != "group-aggregate" or table.stored != RECORDS:
        raise NotSupportedError(
            f"Rows of '{table.name}' cannot be written: only the records of a GROUP BY can.",
            hint="Its other tables, and those of other operators, can be read.",
        )
    if not hashed_by_keys(state_files(savepoint), table, layout):
        raise NotSupportedError(
            f"Rows of '{table.name}' cannot be written: its operator shares an exchange with others, so its "
            "rows are not ordered by the hash of all their keys."
        )
    stored = {c.name: c.stored for c in table.columns}
    missing = {f.name for f in layout.keys} - {stored[f.name] for f in fields}
    if missing:
        raise ValidationError(
            f"A table to write rows of '{table.name}' by needs its keys: {sorted(missing)}."
        )
    has_more = len(operator.tables) > 1
    writer = StateWriter(
        root=target.below(STATE),
        operator=operator.id,
        shown=table.name,
        layout=layout,
        derived=tuple(f.name for f in layout.columns if is_derived(f.name, has_more=has_more)),
        parts=parts_of(operator),
        columns=tuple(stored[f.name] for f in fields),
        epoch=commit.epoch,
        now=commit.time,
    )
    return SavepointSink(savepoint=savepoint, operator=operator, target=target, writer=writer, fields=fields)
