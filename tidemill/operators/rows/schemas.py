"""The output schema of an operator: its columns, then the hidden columns that consumers need."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN


def output_schema(
    columns: Iterable[tuple[str, pa.DataType]],
    *,
    kinds: bool = False,
    sequence: bool = False,
    timed: bool = False,
) -> pa.Schema:
    """``kinds``: rows can be taken back; ``sequence``: they say in which order they come; ``timed``: which
    watermark those before them had reached."""
    fields = [pa.field(*column) for column in columns]
    fields += [pa.field(KIND_COLUMN, pa.int8())] * kinds
    fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * sequence
    fields += [pa.field(WATERMARK_COLUMN, pa.int64())] * timed
    return pa.schema(fields)
