"""Sources of ``postgres-cdc`` without Spark: their epochs one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc import cdc_options
from tests.connectors.sources import source, table
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.postgres_cdc.offsets import ChangeRange, SnapshotRange, from_json
from tidemill.connectors.postgres_cdc.source import CdcSource
from tidemill.types import logical as t

COLUMNS: Mapping[str, t.LogicalType] = {"id": t.INT, "name": t.STRING}
Row = tuple[Any, ...]
NO_LIMIT = ReadLimit()


def cdc(
    server: Server,
    columns: Mapping[str, t.LogicalType] = COLUMNS,
    *,
    key: tuple[str, ...] = ("id",),
    fields: tuple[str, ...] | None = None,
    sequence: bool = False,
    **more: str,
) -> CdcSource:
    declared = table(columns, cdc_options(server, **more), primary_key=key)
    made = source(declared, fields=fields, streaming=True, sequence=sequence)
    assert isinstance(made, CdcSource)
    return made


def rows(made: CdcSource, start: Offset | None, end: Offset) -> list[Row]:
    """Kind and values."""
    found: list[Row] = []
    for part in parts(made, start, end):
        for batch in made.reader.read(part):
            kinds = batch.column(KIND_COLUMN).to_pylist()
            values = zip(*(batch.column(f.name).to_pylist() for f in made.reader.fields), strict=True)
            found += [(RowKind(k).short, *v) for k, v in zip(kinds, values, strict=True)]
    return found


def parts(made: CdcSource, start: Offset | None, end: Offset) -> Sequence[ChangeRange | SnapshotRange]:
    return made.parts(start, from_json(end))


def step(made: CdcSource, start: Offset | None, limit: ReadLimit = NO_LIMIT) -> tuple[list[Row], Offset]:
    """An epoch."""
    end = made.next_offset(start, limit)
    found = [] if made.is_empty(start, end) else rows(made, start, end)
    made.server.release()
    return found, end
