"""The values of partition columns, which logs and tokens have as texts."""

from __future__ import annotations

import pyarrow as pa

from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type


def typed_value(field: Field, text: str | None) -> object:
    """As Arrow gives it; ValueError for a text that is no value of the column."""
    if text is None:
        return None
    if isinstance(field.type, t.TimestampType | t.LocalZonedTimestampType):
        text = text.replace("T", " ")
    if isinstance(field.type, t.LocalZonedTimestampType) and not text.endswith("Z"):
        text = f"{text}Z"
    try:
        return pa.scalar(parse(field.type, text, CSV_RULES), arrow_type(field.type)).as_py()
    except (ArithmeticError, TypeError, pa.ArrowException) as e:
        raise ValueError(str(e)) from None
