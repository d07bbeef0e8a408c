"""Decodes and encodes with a format directly, without files or Spark."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.formats.api import Block, DecodeRequest, EncodeRequest
from tidemill.connectors.formats.registry import find_format
from tidemill.types.logical import Field, LogicalType


def decode(
    identifier: str,
    columns: Mapping[str, LogicalType],
    text: str | bytes,
    options: Mapping[str, str] | None = None,
    *,
    wanted: tuple[str, ...] | None = None,
    metadata: Mapping[str, tuple[str, LogicalType]] | None = None,
) -> list[tuple[Any, ...]]:
    """The rows as tuples; of a changelog with ``+I`` and so on in front."""
    fields = tuple(Field(n, k) for n, k in columns.items())
    decoder = find_format(identifier).decoder(
        DecodeRequest(
            columns=fields,
            wanted=tuple(f for f in fields if wanted is None or f.name in wanted),
            metadata=tuple((Field(n, kind), key) for n, (key, kind) in (metadata or {}).items()),
            options=options or {},
            time_zone="UTC",
        )
    )
    data = text if isinstance(text, bytes) else text.encode()
    table = decoder.decode(Block(data=pa.py_buffer(data)))
    rows = []
    for row in table.to_pylist():
        kind = row.pop(KIND_COLUMN, None)
        rows.append(tuple(row.values()) if kind is None else (RowKind(kind).short, *row.values()))
    return rows


def encode(
    identifier: str,
    columns: Mapping[str, LogicalType],
    table: pa.Table,
    options: Mapping[str, str] | None = None,
) -> str:
    request = EncodeRequest(
        fields=tuple(Field(n, k) for n, k in columns.items()),
        changelog=KIND_COLUMN in table.column_names,
        options=options or {},
        time_zone="UTC",
    )
    stream = io.BytesIO()
    writer = find_format(identifier).encoder(request).open(pa.PythonFile(stream, "w"))
    writer.write(table)
    writer.close()
    return stream.getvalue().decode()
