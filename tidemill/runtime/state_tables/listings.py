"""Tables about a savepoint: its operators, their columns, what they weigh, the epoch that it is of.

SELECT name, row_count FROM operators     ->  group_aggregate_1, 1200
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.state_tables.naming import OperatorState
from tidemill.state.slices import KEY_GROUPS
from tidemill.types.logical import BIGINT, INT, STRING, Field, LocalZonedTimestampType

Rows = Iterator[tuple[Any, ...]]
_INSTANT = LocalZonedTimestampType(precision=3)


@dataclass(frozen=True, slots=True)
class Listing:
    """``rows``: of a savepoint and its operators."""

    fields: tuple[Field, ...]
    rows: Callable[[Savepoint, tuple[OperatorState, ...]], Rows]


def _operators(savepoint: Savepoint, operators: tuple[OperatorState, ...]) -> Rows:
    for o in operators:
        rows, size = sum(m.rows for m in o.manifests), sum(m.size for m in o.manifests)
        yield o.name, o.id, o.kind, o.text, len(o.tables), len(o.slices), rows, size


def _columns(savepoint: Savepoint, operators: tuple[OperatorState, ...]) -> Rows:
    for o in operators:
        for table in o.tables:
            for c in table.columns:
                stored = (c.table or table.stored, c.stored)
                yield o.name, table.name, c.name, str(c.type), c.role or None, c.since, *stored


def _sizes(savepoint: Savepoint, operators: tuple[OperatorState, ...]) -> Rows:
    """Rows of all runs: a key in several runs counts several times."""
    for o in operators:
        for table in o.tables:
            for partition, entries in sorted(table.entries.items()):
                runs = {(r.path, r.start): r for entry in entries for r in entry.runs}.values()
                size = sum({r.path: r.size for r in runs}.values())
                yield o.name, table.name, partition, len(runs), sum(r.rows for r in runs), size


def _metadata(savepoint: Savepoint, operators: tuple[OperatorState, ...]) -> Rows:
    for o in operators:
        parts, size = len(o.slices), sum(m.size for m in o.manifests)
        yield savepoint.epoch, o.text, o.name, o.id, parts, KEY_GROUPS, parts, 0, size


def _epochs(savepoint: Savepoint, operators: tuple[OperatorState, ...]) -> Rows:
    identity, commit = savepoint.identity, savepoint.commit
    times = (commit.time if commit is not None else 0, savepoint.created)
    yield savepoint.epoch, *map(_instant, times), identity.job_id, identity.name


def _instant(milliseconds: int) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC) if milliseconds else None


LISTINGS: Mapping[str, Listing] = {
    "operators": Listing(
        (
            Field("name", STRING),
            Field("id", STRING),
            Field("kind", STRING),
            Field("text", STRING),
            Field("table_count", INT),
            Field("partition_count", INT),
            Field("row_count", BIGINT),
            Field("byte_count", BIGINT),
        ),
        _operators,
    ),
    "columns": Listing(
        (
            Field("operator", STRING),
            Field("table_name", STRING),
            Field("column_name", STRING),
            Field("type", STRING),
            Field("role", STRING),
            Field("since", BIGINT),
            Field("stored_table", STRING),
            Field("stored_column", STRING),
        ),
        _columns,
    ),
    "sizes": Listing(
        (
            Field("operator", STRING),
            Field("table_name", STRING),
            Field("partition_id", INT),
            Field("run_count", INT),
            Field("row_count", BIGINT),
            Field("byte_count", BIGINT),
        ),
        _sizes,
    ),
    "epochs": Listing(
        (
            Field("epoch", BIGINT),
            Field("processed_at", _INSTANT),
            Field("created_at", _INSTANT),
            Field("job_id", STRING),
            Field("job_name", STRING),
        ),
        _epochs,
    ),
}

_COUNT, _NUMBER = INT.with_nullable(False), BIGINT.with_nullable(False)
METADATA = "savepoint_metadata"
FUNCTIONS: Mapping[str, Listing] = {
    METADATA: Listing(
        (
            Field("checkpoint-id", _NUMBER),
            Field("operator-name", STRING),
            Field("operator-uid", STRING),
            Field("operator-uid-hash", STRING.with_nullable(False)),
            Field("operator-parallelism", _COUNT),
            Field("operator-max-parallelism", _COUNT),
            Field("operator-subtask-state-count", _COUNT),
            Field("operator-coordinator-state-size-in-bytes", _NUMBER),
            Field("operator-total-size-in-bytes", _NUMBER),
        ),
        _metadata,
    ),
}
"""What table functions give. Columns as in Flink (FLIP-512)."""
