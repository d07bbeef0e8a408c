"""Type text -> LogicalType, e.g. for catalogs, connectors' schemas and tests."""

from __future__ import annotations

from tidemill.sql.type_grammar import TypeGrammar
from tidemill.types.logical import LogicalType


class _PrintedTypes(TypeGrammar):
    intervals_have_columns = True


def parse_type(text: str) -> LogicalType:
    """The type that ``text`` names in Flink's syntax, ``NOT NULL`` included.

    Raises SqlSyntaxError or ValidationError with the position in ``text``, NotSupportedError for types
    Tidemill has no values of (RAW, VARIANT, STRUCTURED).
    """
    cursor = _PrintedTypes(text)
    kind = cursor.nullable_type()
    if not cursor.at_end():
        cursor.fail("<EOF>")
    return kind
