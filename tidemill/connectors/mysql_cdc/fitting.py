"""Checks that reading the table can lose no change. An error names the first problem of table or log."""

from __future__ import annotations

from tidemill.connectors.mysql_cdc.offsets import Position, order, shown
from tidemill.connectors.mysql_cdc.server import Capture, LogStatus, TableStatus
from tidemill.connectors.mysql_cdc.values import ENCODINGS, can_read
from tidemill.errors import NotSupportedError
from tidemill.types.logical import Field

_NEW_JOB_HINT = "Start the job with another checkpoint directory."


def check_table(
    capture: Capture, table: TableStatus | None, columns: tuple[Field, ...], keys: tuple[str, ...]
) -> TableStatus:
    """``table``, if the connector can read its ``columns``; ``keys``: the declared primary key."""
    if table is None:
        raise capture.error(
            "it does not exist.", "'database-name' and 'table-name' are no regular expressions."
        )
    if table.kind != "BASE TABLE" or (table.engine or "").lower() != "innodb":
        raise NotSupportedError(f"'{capture.name}' is a {table.kind} of {table.engine}: mysql-cdc of it")
    if set(table.keys) != set(keys):
        found = ", ".join(table.keys) or "none"
        raise capture.error(f"its primary key is ({found}), declared is ({', '.join(keys)}).")
    if table.cascade is not None:
        raise NotSupportedError(
            f"The foreign key '{table.cascade}' of '{capture.name}' with CASCADE or SET NULL",
            hint="The server does not log the rows that such a key changes.",
        )
    found_columns = {column.name: column for column in table.columns}
    for field in columns:
        column = found_columns.get(field.name)
        if column is None:
            raise capture.error(f"it has no column '{field.name}'.", f"It has: {', '.join(found_columns)}.")
        if not can_read(field.type, column):
            raise capture.error(
                f"column '{field.name}' is of type {column.text}, which is not read as {field.type}."
            )
        if column.charset is not None and column.charset not in ENCODINGS:
            raise NotSupportedError(f"Column '{field.name}' of the character set {column.charset}: mysql-cdc")
    return table


def check_log(capture: Capture, log: LogStatus, before: Position | None = None) -> None:
    """Raises if the log has not all changes, or not those behind ``before`` any more."""
    if log.problem is not None or log.end is None:
        raise capture.error(log.problem or "the server writes no binlog.")
    if before is None:
        return
    sizes = dict(log.files)
    left = f"the log goes from {log.files[0][0]} to {shown(log.end)}"
    if before.server != log.server:
        raise capture.error(
            f"the job has read the log of server {before.server}, and this is server {log.server}.",
            _NEW_JOB_HINT,
        )
    if order(before.place) > order(log.end) or before.pos > sizes.get(before.file, before.pos):
        raise capture.error(
            f"the job has read up to {shown(before.place)}, but {left}: the server was restored,"
            " or its log reset.",
            _NEW_JOB_HINT,
        )
    if before.file not in sizes:
        raise capture.error(f"the changes since {shown(before.place)} are purged: {left}.", _NEW_JOB_HINT)


def check_unchanged(capture: Capture, before: Position, table: TableStatus) -> None:
    """Raises if a column differs from those at the start of the job."""
    then, now = dict(before.columns), dict(table.shape)
    for name in (*then, *now):
        if name not in now:
            change = "was dropped or renamed"
        elif name not in then:
            change = "was added"
        elif then[name] != now[name]:
            change = f"was {then[name]} and is {now[name]}"
        else:
            continue
        raise capture.error(f"column '{name}' {change} since the job began.", _NEW_JOB_HINT)
    if before.columns != table.shape:
        raise capture.error(
            f"its columns have another order since the job began: {', '.join(now)}.", _NEW_JOB_HINT
        )
