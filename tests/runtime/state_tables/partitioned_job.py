"""A kernel by event time in several partitions, its savepoint, and what an edit or a build leaves of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.operators.epochs import TINY
from tidemill.changelog.columns import single
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.changelog.watermarks import NONE
from tidemill.files.storage import Storage
from tidemill.operators.api import EpochContext, Evolving, OperatorSpec
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.epochs import EpochCommit, recorded
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.runtime.checkpoint.savepoint import Savepoint, Snapshot
from tidemill.runtime.state_tables.editing import Edit, SavepointSink, sink_of
from tidemill.runtime.state_tables.naming import (
    OperatorState,
    StoredTable,
    find_table,
    operators_of,
    state_files,
    told_layout,
)
from tidemill.runtime.state_tables.new_tables import NewTable, new_tables
from tidemill.runtime.state_tables.source import StateReader
from tidemill.runtime.state_tables.writer import StateWriter
from tidemill.state.slices import KEY_GROUP_BITS, Slice, key_groups, resliced
from tidemill.state.store import StateStore
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type

OPERATOR = "window-aggregate-0123456789abcdef"


@dataclass
class PartitionedJob:
    """``keys``: the columns whose hash says in which partition a row is. ``number``: of the next epoch."""

    root: Path
    spec: OperatorSpec
    keys: tuple[str, ...]
    partitions: int
    slices: dict[int, tuple[Slice, ...]] = field(default_factory=dict)
    number: int = 1
    mark: int = NONE
    late: int = 0

    def step(self, table: pa.Table, mark: int) -> pa.Table:
        """The output of an epoch after which time has come to ``mark``."""
        hashes = hash_columns([single(table.column(name)) for name in self.keys], len(table))
        groups = hashes >> np.uint64(64 - KEY_GROUP_BITS)
        held, outputs = resliced(self.slices, self.partitions), []
        for number in range(self.partitions):
            first, stop = key_groups(number, self.partitions)
            own = table.filter(pa.array((groups >= first) & (groups < stop)))
            store = StateStore.open(
                str(self.root / "state"),
                OPERATOR,
                number,
                held.get(number),
                self.number,
                groups=(first, stop),
                options=TINY,
            )
            context = EpochContext(
                epoch=self.number, time=0, partition=number, watermark=mark, before=self.mark
            )
            outputs.append(self.spec.step((own,), store, context))
            self.late += context.late.count
            manifest = store.flush()
            if manifest is not None:
                held[number] = (Slice(manifest, first, stop),)
        self.slices, self.mark, self.number = held, mark, self.number + 1
        return pa.concat_tables(outputs)

    def savepoint(self, place: Path, gap: int = 0) -> Savepoint:
        commit = EpochCommit(
            epoch=self.number - 1,
            time=5,
            offsets={},
            manifests=recorded({OPERATOR: self.slices}),
            tokens={},
            watermarks={} if self.mark == NONE else {OPERATOR: self.mark},
        )
        checkpoint = Storage(str(self.root))
        Snapshot(identity=self.identity(gap), commit=commit, checkpoint=checkpoint).write(Storage(str(place)))
        return Savepoint.open(Storage(str(place)))

    def identity(self, gap: int = 0) -> JobIdentity:
        """``gap``: of sessions, as the schema says it."""
        assert isinstance(self.spec, Evolving)
        schema = OperatorSchema(
            kind="window-aggregate",
            text="windows",
            rows="",
            identity="",
            keys=self.keys,
            tables={layout.name: layout.described for layout in self.spec.evolving},
            gap=gap,
        )
        return JobIdentity(
            job_id="j", fingerprint="f", nodes={}, operators={OPERATOR: "x"}, schema={OPERATOR: schema}
        )

    def new_tables(self, watermark: int, gap: int = 0) -> dict[str, NewTable]:
        """What must be given to build the state of the job, whose time has come to ``watermark``."""
        read = g.Read(columns=(), kinds=INSERT_ONLY, sequenced=False, source="s", schema="")
        node = g.Keyed(
            columns=(),
            kinds=INSERT_ONLY,
            sequenced=False,
            operator=OPERATOR,
            spec=self.spec,
            ports=(g.Port(input=read, references=(), columns=(), keys=self.keys, timed=True),),
            schema="",
        )
        marks = {} if watermark == NONE else {OPERATOR: watermark}
        return new_tables(Storage(str(self.root)), self.identity(gap), [node], marks)

    def built(
        self, given: Mapping[str, list[dict[str, Any]]], watermark: int, gap: int = 0
    ) -> PartitionedJob:
        """The job as it begins with state of these rows, by table; columns by their stored names."""
        slices: dict[int, tuple[Slice, ...]] = {}
        for name, new in self.new_tables(watermark, gap).items():
            rows = given[name]
            columns = [c for c in new.columns if not rows or c.stored in rows[0]]
            table = pa.table(
                [pa.array([row[c.stored] for row in rows], arrow_type(c.type)) for c in columns],
                names=[c.stored for c in columns],
            )
            parts = tuple(
                (n, *key_groups(n, self.partitions), tuple(map(astuple, slices.get(n, ()))))
                for n in range(self.partitions)
            )
            writer = StateWriter(
                root=Storage(str(self.root / "state")),
                operator=OPERATOR,
                shown=name,
                rules=new.rules,
                names={c.stored: c.name for c in new.table.columns},
                parts=parts,
                columns=tuple(table.column_names),
                epoch=1,
                now=5,
            )
            batches = writer.write(list(writer.route(table.combine_chunks().to_batches())))
            for token in (json.loads(t) for batch in batches for t in batch.column(0).to_pylist()):
                slices[token["part"]] = (Slice(token["manifest"], *token["groups"]),)
        return replace(self, slices=slices, mark=watermark, number=2)

    def going_on(self, savepoint: Savepoint, root: Path, partitions: int) -> PartitionedJob:
        """The job again, from ``savepoint`` at ``root``, in other partitions."""
        assert savepoint.commit is not None
        slices = savepoint.commit.slices.get(OPERATOR, {})
        return replace(self, root=root, partitions=partitions, slices=slices)


def state_of(savepoint: Savepoint, name: str) -> tuple[OperatorState, StoredTable]:
    found = find_table(operators_of(savepoint), name)
    assert found is not None
    return found


def rows_of(savepoint: Savepoint, name: str) -> list[dict[str, Any]]:
    """The rows of a table as SQL shows them, without their partition."""
    operator, table = state_of(savepoint, name)
    reader = StateReader(
        files=state_files(savepoint),
        table=table.stored,
        now=0,
        columns=tuple(c for c in table.columns if c.role != "partition"),
        layout=told_layout(state_files(savepoint), table),
    )
    tasks = sorted(operator.slices.items())
    batches = (b for number, parts in tasks for b in reader.partition_rows(number, list(parts)))
    return [row for batch in batches for row in batch.to_pylist()]


def sink(savepoint: Savepoint, place: Path, name: str, deletes: bool = False) -> SavepointSink:
    operator, table = state_of(savepoint, name)
    columns = [c for c in table.columns if c.role != "partition"]
    edit = Edit(fields=tuple(Field(c.name, c.type) for c in columns), deletes=deletes)
    return sink_of(savepoint, (operator,), operator, table, Storage(str(place)), edit)


def edited(made: SavepointSink, rows: Sequence[Mapping[str, object]], gone: Iterable[int] = ()) -> Savepoint:
    """The new savepoint, in which ``rows`` are written and those numbered in ``gone`` are deleted."""
    given = {name: [row.get(name) for row in rows] for name in made.writer.columns}
    types = {c: arrow_type(f.type) for c, f in zip(made.writer.columns, made.edit.fields, strict=True)}
    columns = {name: pa.array(values, types[name]) for name, values in given.items()}
    if made.edit.deletes:
        out = set(gone)
        kinds = [int(RowKind.DELETE if n in out else RowKind.INSERT) for n in range(len(rows))]
        columns["$kind"] = pa.array(kinds, pa.int8())
    made.begin()
    try:
        routed = list(made.writer.route([pa.RecordBatch.from_pydict(columns)]))
        tokens = [token for batch in made.writer.write(routed) for token in batch.column(0).to_pylist()]
    except BaseException:
        made.discard(1)
        raise
    assert all(json.loads(token)["manifest"] for token in tokens) or not tokens
    made.publish(1, tokens)
    new = Savepoint.open(made.target)
    new.check_whole()
    return new
