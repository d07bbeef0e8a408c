"""The tables of state that can be written, and the conditions that their rows must meet.

records of a GROUP BY                 rows are added, changed and deleted
slices of a window aggregation        rows are changed; deleted if the operator has no other table
sessions, of rows that only come      rows are added, changed and deleted
rows of Top-N and deduplication       rows are changed and deleted
rows of a join without TTL            their weights are changed, rows are deleted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidemill.changelog.watermarks import NONE
from tidemill.errors import NotSupportedError
from tidemill.operators.group_aggregate.shape import RECORDS
from tidemill.operators.rows.entries import COUNT
from tidemill.operators.window.store.partial_aggregates import SLICES
from tidemill.operators.window.store.sessions import PIECES, SESSIONS, WAKES
from tidemill.runtime.state_tables.invariants import is_derived
from tidemill.runtime.state_tables.naming import OperatorState, StoredTable, known_layout
from tidemill.runtime.state_tables.sessions import SessionRules
from tidemill.runtime.state_tables.writer import TableRules, hashed_by_keys
from tidemill.state.conversion import is_other
from tidemill.state.layout import Layout
from tidemill.state.packing import unpacked
from tidemill.state.run import RunReader
from tidemill.state.storage import StateFiles
from tidemill.state.whole_table import stored_layout

SHARED = "shared-distinct"
_TELLING = 100
_WRITABLE: Mapping[tuple[str, str], str] = {
    ("group-aggregate", RECORDS): "aggregation",
    ("window-aggregate", SLICES): "slices",
    ("window-aggregate", PIECES): "sessions",
    ("rank", "rows"): "rows",
    ("join", "left"): "side",
    ("join", "right"): "side",
}


def rules_of(
    files: StateFiles,
    operators: Iterable[OperatorState],
    operator: OperatorState,
    table: StoredTable,
    watermark: int = NONE,
) -> TableRules:
    """NotSupportedError for a table whose rows cannot be written. ``watermark``: how far the operator's time
    has come."""
    family = _WRITABLE.get((operator.kind, table.stored))
    layout = known_layout(files, table) if family else None
    if layout is None or not _serves(family, layout, operator):
        raise NotSupportedError(
            f"Rows of '{table.name}', a table of {operator.text}, cannot be written: the records of a "
            "GROUP BY, slices, sessions, and the rows of Top-N, deduplication and joins without TTL can.",
            hint="All other tables can be read.",
        )
    found = _as_stored(files, table, layout)
    required = tuple(c.stored for c in table.columns if c.required)
    if family in ("aggregation", "slices"):
        shared = any(o.kind == SHARED for o in operators)
        return _counted(files, operator, table, found, required, shared=shared)
    if family == "sessions":
        sessions = SessionRules(keys=found.keys, gap=operator.gap, watermark=watermark)
        return TableRules(layout=found, adds=True, required=required, counts=True, sessions=sessions)
    if not found.values:
        return TableRules(layout=found, required=required, adds=False)
    return TableRules(layout=found, required=required, times="" if found.additive else COUNT)


def _serves(family: str | None, layout: Layout, operator: OperatorState) -> bool:
    if family == "slices":
        return layout.by_time and not layout.additive and not layout.values
    if family == "sessions":
        own = {t.stored for t in operator.tables} <= {PIECES, SESSIONS, WAKES}
        return operator.gap > 0 and own and not layout.additive
    if family == "side":
        return layout.additive and all(t.stored in ("left", "right") for t in operator.tables)
    if family == "rows":
        return not layout.by_time and (layout.additive or not layout.values or layout.ttl > 0)
    return True


def _counted(
    files: StateFiles,
    operator: OperatorState,
    table: StoredTable,
    layout: Layout,
    required: tuple[str, ...],
    *,
    shared: bool,
) -> TableRules:
    """``shared``: the job has values that several aggregations share."""
    others = [t for t in operator.tables if t.stored != table.stored]
    kept, followers = "", tuple[Layout, ...]()
    if layout.by_time:
        kept = "other tables of its operator tell of the same windows" if others else ""
    elif shared:
        kept = "aggregations of the job share distinct values, which would stay"
    else:
        followers = tuple(_as_stored(files, t, known_layout(files, t)) for t in others if t.entries)
    return TableRules(
        layout=layout,
        adds=not layout.by_time,
        derived=tuple(f.name for f in layout.columns if is_derived(f.name, has_more=bool(others) or shared)),
        required=required,
        counts=True,
        followers=followers,
        kept=kept,
    )


def _as_stored(files: StateFiles, table: StoredTable, layout: Layout) -> Layout:
    """With the codes that rows have: the first rows of a run of each partition tell, as all rows of an
    operator have their hashes from one exchange. NotSupportedError where these are not those of the keys."""
    ways = [False, True] if layout.additive else [False]
    for entry in (e for entries in table.entries.values() for e in entries):
        run = next(entry.runs, None)
        if run is not None:
            rows = unpacked(RunReader.of_run(files, run).table.slice(0, _TELLING)).combine_chunks()
            own = stored_layout(files, table.stored, entry) if is_other(layout, entry) else layout
            values = tuple(f for f in own.values if f.name in rows.column_names)
            ways = [way for way in ways if hashed_by_keys(rows, replace(own, values=values, growing=way))]
    if not ways:
        raise NotSupportedError(
            f"Rows of '{table.name}' cannot be written: its operator shares an exchange with others, so its "
            "rows are not ordered by the hash of all their keys."
        )
    return replace(layout, growing=ways[0])
