"""Type text -> LogicalType, e.g. for catalogs, connectors' schemas and tests."""

from __future__ import annotations

from tidemill.deep_calls import with_room
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.types import Types
from tidemill.types.logical import LogicalType


def parse_type(text: str) -> LogicalType:
    """The type that ``text`` names in Flink's syntax, ``NOT NULL`` included.

    Raises SqlSyntaxError or ValidationError with the position in ``text``, NotSupportedError for types
    Tidemill has no values of (RAW, VARIANT, STRUCTURED).
    """
    return with_room(lambda: _parsed(Cursor(text)))


def _parsed(cursor: Cursor) -> LogicalType:
    kind = Types(cursor, interval_columns=True).nullable_type()
    if not cursor.at_end():
        cursor.fail("<EOF>")
    return kind
