"""The smallest and largest values of a Parquet file's columns, from its footer, as JSON.

Texts are cut and times are widened, never narrowed: no value lies outside. Columns that are parts of others
are left out, and bounds of floats: Parquet's say nothing of NaN, which readers order in different ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from pyarrow import parquet

_LETTERS = 32
_COLUMNS = 32
"""So many columns have statistics, as in Delta."""


def column_statistics(footer: parquet.FileMetaData) -> dict[str, list[Any]]:
    """[smallest, largest, NULLs] of each column that they are known of; the first two None where not."""
    found = {}
    for place in range(min(footer.num_columns, _COLUMNS)):
        name = footer.schema.column(place).path
        chunks = list(_chunks(footer, place))
        if name == footer.schema.column(place).name and all(chunk is not None for chunk in chunks):
            found[name] = _merged(chunks)
    return found


def _chunks(footer: parquet.FileMetaData, place: int) -> Iterator[parquet.Statistics | None]:
    for group in range(footer.num_row_groups):
        yield footer.row_group(group).column(place).statistics


def _merged(chunks: list[Any]) -> list[Any]:
    known = all(chunk.has_null_count for chunk in chunks)
    nulls = sum(chunk.null_count for chunk in chunks) if known else None
    valued = [chunk for chunk in chunks if chunk.num_values]
    if not valued or not all(chunk.has_min_max for chunk in valued):
        return [None, None, nulls]
    return [_low(min(c.min for c in valued)), _high(max(c.max for c in valued)), nulls]


def _low(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_LETTERS]
    if isinstance(value, datetime):
        return _text(value.replace(microsecond=value.microsecond // 1000 * 1000))
    return _plain(value)


def _high(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LETTERS else None
    if isinstance(value, datetime):
        rest = -value.microsecond % 1000
        return _text(value + timedelta(microseconds=rest))
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep="T", timespec="milliseconds")
    return text if value.tzinfo is None else f"{text}Z"
