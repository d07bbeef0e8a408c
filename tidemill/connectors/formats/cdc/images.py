"""Formats whose messages carry whole before and after images: the shared part of Debezium and OGG."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.formats.cdc.messages import Changes, Mask, changes, valid

NO_BEFORE = (
    'The "before" field of {kind} message is null, if you are using {name} Postgres Connector, please check'
    " the Postgres table has been set REPLICA IDENTITY to FULL level."
)


class Envelopes(Protocol):
    """Messages with images; ``name``: the CDC tool that writes them."""

    @property
    def name(self) -> str: ...

    def reject(self, bad: Mask, reason: str) -> Mask:
        """As in ``Messages``."""
        ...


def image_changes(
    messages: Envelopes, before: pa.Array, after: pa.Array, insert: Mask, update: Mask, delete: Mask
) -> list[Changes]:
    """+I of ``after``; -U of ``before`` and +U of ``after``; -D of ``before``. A message that lacks the
    image it needs is rejected."""
    no_before, no_after = ~valid(before), ~valid(after)
    insert = insert & messages.reject(insert & no_after, 'The "after" field of INSERT message is null.')
    reason = NO_BEFORE.format(kind="UPDATE", name=messages.name)
    update = update & messages.reject(update & no_before, reason)
    update = update & messages.reject(update & no_after, 'The "after" field of UPDATE message is null.')
    reason = NO_BEFORE.format(kind="DELETE", name=messages.name)
    delete = delete & messages.reject(delete & no_before, reason)
    return [
        changes(after, insert, RowKind.INSERT, 0),
        changes(before, update, RowKind.UPDATE_BEFORE, 0),
        changes(after, update, RowKind.UPDATE_AFTER, 1),
        changes(before, delete, RowKind.DELETE, 0),
    ]
