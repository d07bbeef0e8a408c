"""A query that changes while its state stays: compiled plans whose aggregation runs here, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.config.option import Configuration
from tidemill.operators.api import EpochContext
from tidemill.physical.identities import RULES
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.directory import EpochCommit
from tidemill.runtime.checkpoint.evolution import Evolution, evolution
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.compile.windows import TIME
from tidemill.runtime.job_identity import job_identity
from tidemill.runtime.job_start import state_names, unread_job
from tidemill.session import planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query
from tidemill.state.store import StateStore

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


@dataclass
class ChangingQuery:
    """``start`` gives the job another query; ``epoch`` feeds rows to its one aggregation."""

    root: Path
    context: SessionContext = field(default_factory=session)
    number: int = 0
    identity: JobIdentity | None = None
    _base: str | None = None
    _keyed: g.Keyed | None = None

    def compiled(self, sql: str) -> tuple[JobIdentity, g.Keyed]:
        """The job of ``sql`` if it begins with the state that there is now."""
        statement = parse_statement(sql)
        assert isinstance(statement, Query)
        logical = planning.optimized(planning.bind(self.context, statement))
        config = self.context.configuration
        root = planning.physical(config, logical)
        commit = EpochCommit(epoch=self.number, time=0, offsets={}, manifests={}, tokens={})
        names = state_names(self.identity, commit) if self.identity is not None else None
        outputs, context = unread_job([root], config, frames={}, zone="UTC", names=names)
        (keyed,) = [n for out in outputs.values() for n in out.walk() if isinstance(n, g.Keyed)]
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

    def epoch(self, rows: list[Row], watermark: int = NONE) -> list[tuple[int, tuple[Any, ...]]]:
        """The changes that the epoch gives, as (kind, fields)."""
        assert self._keyed is not None
        self.number += 1
        store = StateStore.open(str(self.root), self._keyed.operator, 0, self._base, self.number)
        context = EpochContext(
            epoch=self.number, time=0, partition=0, watermark=watermark, before=NONE, reached=watermark
        )
        output = self._keyed.spec.step((self._table(rows),), store, context)
        self._base = store.flush()
        kinds = [0] * len(output)
        if KIND_COLUMN in output.schema.names:
            kinds = output.column(KIND_COLUMN).to_pylist()
            output = output.drop_columns([KIND_COLUMN])
        fields = [tuple(row.values()) for row in output.to_pylist()]
        return list(zip(kinds, fields, strict=True))

    def _table(self, rows: list[Row]) -> pa.Table:
        assert self._keyed is not None
        (port,) = self._keyed.ports
        columns: dict[str, pa.Array] = {}
        for reference, name in zip(port.references, port.columns, strict=True):
            columns[name] = _column(reference, rows)
        if port.input.sequenced:
            first = self.number * 1_000_000
            columns[SEQUENCE_COLUMN] = pa.array(range(first, first + len(rows)), pa.int64())
        if port.timed:
            columns[WATERMARK_COLUMN] = pa.array(np.full(len(rows), NONE), pa.int64())
        return pa.table(columns)


def _column(name: str, rows: list[Row]) -> pa.Array:
    if name == TIME or name == "ts":
        return pa.array([row["ts"] * 1000 for row in rows], pa.timestamp("us"))
    if name.startswith("$f"):
        return pa.array([row["f"] is True for row in rows], pa.bool_())
    kinds = {"k": pa.int32(), "f": pa.bool_()}
    return pa.array([row[name] for row in rows], kinds.get(name, pa.int64()))
