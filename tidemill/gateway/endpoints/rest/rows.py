"""Rows as JSON text, in Flink's two row formats: JSON has values by their types, PLAIN_TEXT has each as
CAST(x AS STRING) gives it."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from tidemill.gateway.endpoints.json_values import Encoder, encoder, nullable, quoted
from tidemill.session import values
from tidemill.session.carrier import rows_of
from tidemill.types import logical as t

FORMATS = ("JSON", "PLAIN_TEXT")


def rows_json(table: pa.Table, fields: tuple[t.Field, ...], row_format: str, zone: dt.tzinfo) -> str:
    """The ``data`` of a page: an array of objects with ``kind`` and ``fields``."""
    if row_format == "JSON":
        encoders = [nullable(encoder(f.type)) for f in fields]
    else:
        encoders = [nullable(_plain(f.type, zone)) for f in fields]
    rows = (
        f'{{"kind":"{kind.name}","fields":[{",".join(e(v) for e, v in zip(encoders, row, strict=True))}]}}'
        for kind, row in rows_of(table, len(fields))
    )
    return f"[{','.join(rows)}]"


def _plain(kind: t.LogicalType, zone: dt.tzinfo) -> Encoder:
    return lambda value: quoted(values.text(kind, value, zone))
