"""Checks that reading the table can lose no change. An error names the first problem of table, slot or
publication."""

from __future__ import annotations

import re

from tidemill.connectors.postgres_cdc.offsets import Columns, Position, lsn_text
from tidemill.connectors.postgres_cdc.server import (
    PLUGIN,
    Capture,
    PublicationStatus,
    SlotStatus,
    TableStatus,
)
from tidemill.connectors.postgres_cdc.texts import can_read
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.types.logical import Field

_NEW_JOB_HINT = "Start the job with a checkpoint directory and a slot of its own."
_KINDS = {"p": "a partitioned table", "v": "a view", "m": "a materialized view", "f": "a foreign table"}
_ORDINARY, _FULL, _NOTHING, _LOGGED = "r", "f", "n", "p"
_PLAIN = re.compile(r"\w+")


def check_table(
    capture: Capture, table: TableStatus | None, columns: tuple[Field, ...], *, by_key: bool, changes: bool
) -> TableStatus:
    """``table``, if the connector can read its ``columns``. ``changes``: whether it reads changes, too, as
    upserts ``by_key`` or with old and new rows."""
    if table is None:
        plain = _PLAIN.fullmatch(capture.schema) and _PLAIN.fullmatch(capture.table)
        hint = "" if plain else "'schema-name' and 'table-name' are names, not regular expressions."
        raise capture.error("it does not exist.", hint)
    if table.kind != _ORDINARY:
        raise NotSupportedError(
            f"'{capture.name}' is {_KINDS.get(table.kind, 'no table')}: postgres-cdc of it"
        )
    _check_columns(capture, table, columns)
    if changes:
        _check_changes(capture, table, by_key=by_key)
    return table


def _check_columns(capture: Capture, table: TableStatus, columns: tuple[Field, ...]) -> None:
    for field in columns:
        if field.name not in table.types:
            raise capture.error(
                f"it has no column '{field.name}'.", f"It has: {', '.join(sorted(table.types))}."
            )
        base, text = table.types[field.name]
        if not can_read(field.type, base):
            raise capture.error(
                f"column '{field.name}' is of type {text}, which is not read as {field.type}.",
                "Any type can be declared as STRING.",
            )


def _check_changes(capture: Capture, table: TableStatus, *, by_key: bool) -> None:
    if table.persistence != _LOGGED:
        raise capture.error("it is unlogged or temporary: the server's log has no changes of it.")
    if by_key and table.identity == _NOTHING:
        raise capture.error(
            "its REPLICA IDENTITY is NOTHING: changes do not say which row they change.",
            f"ALTER TABLE {capture.name} REPLICA IDENTITY DEFAULT",
        )
    if not by_key and table.identity != _FULL:
        raise capture.error(
            "its REPLICA IDENTITY is not FULL: updates and deletes come without the old row.",
            f"ALTER TABLE {capture.name} REPLICA IDENTITY FULL; or declare the PRIMARY KEY and set"
            " 'changelog-mode' = 'upsert'.",
        )


def check_slot(capture: Capture, slot: SlotStatus, lsn: int | None = None) -> None:
    """Raises if the slot cannot give the changes from ``lsn`` on; None: from the slot's own position."""
    name = f"slot '{capture.slot}'"
    since = "" if lsn is None else f" The changes since {lsn_text(lsn)} are lost to this job."
    hint = "" if lsn is None else _NEW_JOB_HINT
    if slot.plugin is None:
        raise capture.error(f"{name} does not exist{'' if lsn is None else ' any more'}.{since}", hint)
    if slot.plugin != PLUGIN or not slot.here:
        reason = f"decodes with {slot.plugin}" if slot.plugin != PLUGIN else "is of another database"
        raise capture.error(f"{name} {reason}.", "Name another slot; the job creates it.")
    if slot.lost:
        raise capture.error(
            f"the server has removed the log that {name} needs (max_slot_wal_keep_size).{since}",
            hint or f"SELECT pg_drop_replication_slot('{capture.slot}')",
        )
    if lsn is not None and slot.confirmed > lsn:
        raise capture.error(
            f"{name} has moved on to {lsn_text(slot.confirmed)}, but the job has read up to {lsn_text(lsn)}:"
            " the changes between are gone.",
            "Another job or table uses the slot, or this job went back to an older savepoint."
            f" {_NEW_JOB_HINT}",
        )
    if lsn is not None and slot.flushed < lsn:
        raise capture.error(
            f"the server's log ends at {lsn_text(slot.flushed)}, but the job has read up to {lsn_text(lsn)}:"
            " the"
            " server was restored, or another one has taken its place.",
            _NEW_JOB_HINT,
        )


def check_publication(capture: Capture, publication: PublicationStatus | None) -> None:
    name = f"publication '{capture.publication}'"
    if publication is None or not publication.has:
        verb = "does not exist" if publication is None else "does not have the table"
        raise capture.error(
            f"{name} {verb}: the server sends no changes.",
            f"CREATE PUBLICATION {capture.publication} FOR TABLE {capture.name}, or ALTER PUBLICATION ..."
            " ADD TABLE, before the slot is made.",
        )
    if not publication.whole:
        raise capture.error(f"{name} leaves out some rows, or inserts, updates or deletes.")


def check_unchanged(capture: Capture, before: Position, table: TableStatus, now: Columns) -> None:
    """Raises if the table or a declared column was replaced since ``before``: the log does not announce such
    changes, and rows already read have the old columns. ``now``: the declared columns."""
    if table.oid != before.table:
        raise _changed(capture, "it was dropped and created again, or another table has taken its name.")
    for name, (number, kind) in now.items():
        if before.columns.get(name, (number, kind)) != (number, kind):
            same_number = before.columns[name][0] == number
            raise _changed(
                capture,
                f"column '{name}'"
                f" {'has another type now' if same_number else 'was dropped and added again'}.",
            )


def _changed(capture: Capture, change: str) -> ConnectorError:
    reason = f"{change} The rows that the job has read are not those of the table any more."
    return capture.error(reason, _NEW_JOB_HINT)
