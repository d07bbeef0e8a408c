"""A query that changes while its state stays: compiled plans whose operator runs here, epoch by epoch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.config.option import Configuration
from tidemill.files.storage import Storage
from tidemill.operators.api import HASH_COLUMN, EpochContext
from tidemill.physical.identities import RULES
from tidemill.plan.optimizer import optimize
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.evolution import Evolution, evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.compile.windows import TIME
from tidemill.runtime.job.graphs import state_names, unread_job
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.state_tables.new_tables import new_tables
from tidemill.runtime.state_tables.writer import Part, StateWriter
from tidemill.session import binding, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Insert, Query
from tidemill.state.slices import KEY_GROUPS, Slice, key_groups
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore
from tidemill.state.whole_table import live_rows

CLICKS = (
    "CREATE TABLE clicks (k INT, a BIGINT, b BIGINT, f BOOLEAN, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    "WITH ('connector'='filesystem', 'path'='/c', 'format'='json', 'source.monitor-interval'='1 s')"
)
Row = dict[str, Any]


def session(*tables: str, **options: str) -> SessionContext:
    given = Configuration({key.replace("__", "."): value for key, value in options.items()})
    made = SessionContext(given)
    for text in tables or (CLICKS,):
        execute(parse_statement(text), made)
    return made


def compiled_job(
    context: SessionContext, sql: str, stored: JobIdentity | None = None, zone: str = "UTC"
) -> JobIdentity:
    """The job of a query or an INSERT, by the names of what is ``stored``, as a record has it."""
    statement, config = parse_statement(sql), context.configuration
    if isinstance(statement, Insert):
        roots = planning.physical_job(config, [optimize(binding.bind_insert(context, statement))])
    else:
        assert isinstance(statement, Query)
        roots = [planning.physical(config, optimize(binding.bind(context, statement)))]
    commit = EpochCommit(epoch=1, time=0, offsets={}, manifests={}, tokens={})
    names = state_names(stored, commit) if stored is not None else None
    _, compiled = unread_job(roots, config, frames={}, zone=zone, names=names)
    made = job_identity(roots, compiled, "job", RULES)
    return JobIdentity.from_json(json.loads(json.dumps(asdict(made))))


@dataclass
class ChangingQuery:
    """``start`` gives the job another query; ``epoch`` feeds rows to its one operator of the ``kind``, per
    input. ``types``: of columns of sources that are not as usual. ``base``: the state that it has."""

    root: Path
    context: SessionContext = field(default_factory=session)
    kind: str = ""
    number: int = 0
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    identity: JobIdentity | None = None
    base: str | tuple[Slice, ...] | None = None
    _keyed: g.Keyed | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the operator's rows have, if a query has started."""
        return None if self._keyed is None else self._keyed.columns

    def compiled(self, sql: str) -> tuple[JobIdentity, g.Keyed]:
        """The job of ``sql`` if it begins with the state that there is now."""
        statement = parse_statement(sql)
        assert isinstance(statement, Query)
        logical = optimize(binding.bind(self.context, statement))
        config = self.context.configuration
        root = planning.physical(config, logical)
        commit = EpochCommit(epoch=self.number, time=0, offsets={}, manifests={}, tokens={})
        names = state_names(self.identity, commit) if self.identity is not None else None
        outputs, context = unread_job([root], config, frames={}, zone="UTC", names=names)
        found = {n.operator: n for out in outputs.values() for n in out.walk() if isinstance(n, g.Keyed)}
        (keyed,) = [n for key, n in found.items() if key.startswith(self.kind)]
        return job_identity([root], context, "job", RULES), keyed

    def start(self, sql: str) -> Evolution | None:
        """StateError where the state is refused."""
        wanted, keyed = self.compiled(sql)
        found = None
        if self.identity is not None:
            found = evolution(self.identity, wanted)
            found.check("the savepoint 's'")
        self.identity, self._keyed = wanted, keyed
        return found

    def epoch(
        self, *inputs: list[Row], watermark: int = NONE, time: int = 0
    ) -> list[tuple[int, tuple[Any, ...]]]:
        """The changes that the epoch gives, as (kind, fields); a row's kind is its ``kind``."""
        assert self._keyed is not None
        self.number += 1
        store = StateStore.open(str(self.root), self._keyed.operator, 0, self.base, self.number)
        context = EpochContext(
            epoch=self.number, time=time, partition=0, watermark=watermark, before=NONE, reached=watermark
        )
        ports = self._keyed.ports
        # What all partitions must know of an input comes behind the inputs.
        given = (*inputs, *[inputs[-1]] * (len(ports) - len(inputs)))
        tables = (self._table(port, rows) for port, rows in zip(ports, given, strict=True))
        output = self._keyed.spec.step(tuple(tables), store, context)
        self.base = store.flush() or self.base
        kinds = [0] * len(output)
        if KIND_COLUMN in output.schema.names:
            kinds = output.column(KIND_COLUMN).to_pylist()
            output = output.drop_columns([KIND_COLUMN])
        fields = [tuple(row.values()) for row in output.to_pylist()]
        return list(zip(kinds, fields, strict=True))

    def go_on(self, root: Path, *slices: Slice) -> None:
        """From here on with the state that lies there."""
        self.root, self.base = root, slices

    def rebuild(self, partitions: int = 2, *, counted: bool = True) -> None:
        """Goes on with state that is built of rows which its tables show, as ``CREATE SAVEPOINT`` builds it,
        in several partitions. ``counted``: the rows say how often they are there; otherwise equal rows come
        one by one. No other query may have started yet."""
        assert self._keyed is not None
        assert self.identity is not None
        operator, place = self._keyed.operator, self.root / "built"
        files = StateFiles.open(str(self.root))
        held = (Slice(self.base, 0, KEY_GROUPS),) if isinstance(self.base, str) else self.base or ()
        built: dict[int, tuple[str, int, int]] = {}
        for name, new in new_tables(Storage(str(place)), self.identity, [self._keyed], {}).items():
            pieces = list(live_rows(files, held, new.rules.layout.name, 0))
            if not any(map(len, pieces)):
                continue
            rows = pa.concat_tables(pieces).combine_chunks()
            intake = new.rules.intake
            times = "" if intake is None or counted else intake.times
            if times:
                copies = np.repeat(np.arange(len(rows)), rows.column(times).to_numpy())
                rows = rows.take(pa.array(copies)).drop_columns([times])
            names = [c.stored for c in new.columns if c.stored in rows.column_names]
            parts: list[Part] = []
            for number in range(partitions):
                first, stop = key_groups(number, partitions)
                parts.append((number, first, stop, (built[number],) if number in built else ()))
            writer = StateWriter(
                root=Storage(str(place)),
                operator=operator,
                shown=name,
                rules=new.rules,
                names={c.stored: c.name for c in new.table.columns},
                parts=tuple(parts),
                columns=tuple(names),
                epoch=1,
                now=0,
            )
            for batch in writer.write(writer.route(rows.select(names).combine_chunks().to_batches())):
                for token in map(json.loads, batch.column(0).to_pylist()):
                    if token["manifest"] is not None:
                        built[token["part"]] = (token["manifest"], *token["groups"])
        self.go_on(place, *(Slice(*built[part]) for part in sorted(built)))

    def _table(self, port: g.Port, rows: list[Row]) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        types = {} if port.schema is None else {f.name: f.type for f in port.schema}
        for reference, name in zip(port.references, port.columns, strict=True):
            source = _source_column(port.input, reference)
            columns[name] = _column(source, rows, self.types.get(source) or types.get(name))
        if port.input.kinds != INSERT_ONLY:
            columns[KIND_COLUMN] = pa.array([row.get("kind", 0) for row in rows], pa.int8())
        if port.input.sequenced:
            first = self.number * 1_000_000
            columns[SEQUENCE_COLUMN] = pa.array(range(first, first + len(rows)), pa.int64())
        if port.timed:
            columns[WATERMARK_COLUMN] = pa.array(np.full(len(rows), NONE), pa.int64())
        hashes = hash_columns([columns[key] for key in port.keys], len(rows))
        table = pa.table({**columns, HASH_COLUMN: pa.array(hashes)})
        return table if port.summary is None else port.summary.of(table)


def _source_column(node: g.ExecNode, name: str) -> str:
    """What a column of ``node`` is called in its source."""
    while isinstance(node, g.Select) and name in node.columns:
        reference = node.references[node.columns.index(name)]
        if reference is None:
            break
        node, name = node.input, reference
    return name


_ENDS = {"window_start": 0, "window_end": 10, "window_time": 9}


def _column(name: str, rows: list[Row], kind: pa.DataType | None) -> pa.Array:
    if name == TIME or name == "ts":
        return pa.array([row["ts"] * 1000 for row in rows], pa.timestamp("us"))
    if name in _ENDS:
        # Windows of 10 ms.
        return pa.array([(row["ts"] // 10 * 10 + _ENDS[name]) * 1000 for row in rows], pa.timestamp("us"))
    if name.startswith("$f"):
        return pa.array([row["f"] is True for row in rows], pa.bool_())
    kinds = {"k": pa.int32(), "f": pa.bool_()}
    return pa.array([row[name] for row in rows], kind or kinds.get(name, pa.int64()))


CDC = (
    "CREATE TABLE clicks (k INT, a BIGINT, b BIGINT, f BOOLEAN, ts TIMESTAMP(3)) "
    "WITH ('connector'='filesystem', 'path'='/c', 'format'='debezium-json')"
)
