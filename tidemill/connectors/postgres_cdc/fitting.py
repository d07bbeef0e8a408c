"""Whether table, slot and publication are such that no change can get lost; else an error that says why."""

from __future__ import annotations

import re

from tidemill.connectors.postgres_cdc.offsets import Columns, Position, shown
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

_ANEW = "Start the job with a checkpoint directory and a slot of its own."
_KINDS = {"p": "a partitioned table", "v": "a view", "m": "a materialized view", "f": "a foreign table"}
_ORDINARY, _FULL, _NOTHING, _LOGGED = "r", "f", "n", "p"
_PLAIN = re.compile(r"\w+")


def check_table(
    capture: Capture, table: TableStatus | None, columns: tuple[Field, ...], *, by_key: bool, changes: bool
) -> TableStatus:
    """``changes``: they are read, too, ``by_key`` or with all of the row before."""
    if table is None:
        plain = _PLAIN.fullmatch(capture.schema) and _PLAIN.fullmatch(capture.table)
        hint = "" if plain else "'schema-name' and 'table-name' are names, not regular expressions."
        raise capture.wrong("it does not exist.", hint)
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
            raise capture.wrong(
                f"it has no column '{field.name}'.", f"It has: {', '.join(sorted(table.types))}."
            )
        base, text = table.types[field.name]
        if not can_read(field.type, base):
            raise capture.wrong(
                f"column '{field.name}' is of type {text}, which is not read as {field.type}.",
                "Any type can be declared as STRING.",
            )


def _check_changes(capture: Capture, table: TableStatus, *, by_key: bool) -> None:
    if table.persistence != _LOGGED:
        raise capture.wrong("it is unlogged or temporary: the server's log has no changes of it.")
    if by_key and table.identity == _NOTHING:
        raise capture.wrong(
            "its REPLICA IDENTITY is NOTHING: changes do not tell which row they are of.",
            f"ALTER TABLE {capture.name} REPLICA IDENTITY DEFAULT",
        )
    if not by_key and table.identity != _FULL:
        raise capture.wrong(
            "its REPLICA IDENTITY is not FULL: updates and deletes come without the row before.",
            f"ALTER TABLE {capture.name} REPLICA IDENTITY FULL; or declare the PRIMARY KEY and set"
            " 'changelog-mode' = 'upsert'.",
        )


def check_slot(capture: Capture, slot: SlotStatus, lsn: int | None = None) -> None:
    """``lsn``: from where changes are to be read; None for the slot's place."""
    name = f"slot '{capture.slot}'"
    since = "" if lsn is None else f" The changes since {shown(lsn)} are lost to this job."
    hint = "" if lsn is None else _ANEW
    if slot.plugin is None:
        raise capture.wrong(f"{name} does not exist{'' if lsn is None else ' any more'}.{since}", hint)
    if slot.plugin != PLUGIN or not slot.here:
        what = f"decodes with {slot.plugin}" if slot.plugin != PLUGIN else "is of another database"
        raise capture.wrong(f"{name} {what}.", "Name another slot: it is made.")
    if slot.lost:
        raise capture.wrong(
            f"the server has removed the log that {name} needs (max_slot_wal_keep_size).{since}",
            hint or f"SELECT pg_drop_replication_slot('{capture.slot}')",
        )
    if lsn is not None and slot.confirmed > lsn:
        raise capture.wrong(
            f"{name} has moved on to {shown(slot.confirmed)}, but the job has read up to {shown(lsn)}:"
            " what lies between cannot be read any more.",
            f"Another job or table uses the slot, or this job went back to an older savepoint. {_ANEW}",
        )
    if lsn is not None and slot.flushed < lsn:
        raise capture.wrong(
            f"the server's log ends at {shown(slot.flushed)}, but the job has read up to {shown(lsn)}: the"
            " server was restored, or another one has taken its place.",
            _ANEW,
        )


def check_publication(capture: Capture, publication: PublicationStatus | None) -> None:
    name = f"publication '{capture.publication}'"
    if publication is None or not publication.has:
        verb = "does not exist" if publication is None else "does not have the table"
        raise capture.wrong(
            f"{name} {verb}: changes are not told.",
            f"CREATE PUBLICATION {capture.publication} FOR TABLE {capture.name}, or ALTER PUBLICATION ..."
            " ADD TABLE, before the slot is made.",
        )
    if not publication.whole:
        raise capture.wrong(f"{name} leaves out some rows, or inserts, updates or deletes.")


def check_unchanged(capture: Capture, before: Position, table: TableStatus, now: Columns) -> None:
    """Rows that were read are as the columns were then; changes of columns are not told. ``now``: the
    declared columns."""
    if table.oid != before.table:
        raise _changed(capture, "it was dropped and created again, or another table has taken its name.")
    for name, (place, kind) in now.items():
        if before.columns.get(name, (place, kind)) != (place, kind):
            same = before.columns[name][0] == place
            raise _changed(
                capture,
                f"column '{name}' {'has another type now' if same else 'was dropped and added again'}.",
            )


def _changed(capture: Capture, what: str) -> ConnectorError:
    return capture.wrong(f"{what} The rows that the job has read are not those of the table any more.", _ANEW)
