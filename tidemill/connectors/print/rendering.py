"""Rows as Flink's print sink shows them: ``+I[1, a, 2020-01-01T00:00:00]``, Java's toString all over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import singledispatch
from typing import Any

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.types import logical as t
from tidemill.types.java_text import java_double, java_float
from tidemill.types.logical import Field
from tidemill.types.python_values import python_values

Renderer = Callable[[Any], str]


def render_rows(batch: pa.RecordBatch, fields: tuple[Field, ...]) -> list[str]:
    """One text per row; ``batch`` has the fields and, unless insert-only, ``$kind``."""
    columns = [list(map(renderer(f.type), python_values(batch.column(i)))) for i, f in enumerate(fields)]
    kinds = [RowKind.INSERT.value] * batch.num_rows
    if KIND_COLUMN in batch.schema.names:
        kinds = batch.column(KIND_COLUMN).to_pylist()
    rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    return [f"{RowKind(k).short}[{', '.join(row)}]" for k, row in zip(kinds, rows, strict=True)]


def renderer(kind: t.LogicalType) -> Renderer:
    """The toString of values of ``kind``; None is ``null``."""
    show = _renderer(kind)
    return lambda value: "null" if value is None else show(value)


@singledispatch
def _renderer(kind: t.LogicalType) -> Renderer:
    return str


@_renderer.register
def _(kind: t.BooleanType) -> Renderer:
    return lambda value: "true" if value else "false"


@_renderer.register
def _(kind: t.FloatType) -> Renderer:
    return java_float


@_renderer.register
def _(kind: t.DoubleType) -> Renderer:
    return java_double


@_renderer.register
def _(kind: t.DecimalType) -> Renderer:
    return lambda value: format(value, "f")


@_renderer.register
def _(kind: t.TimestampType) -> Renderer:
    return _local_date_time


@_renderer.register
def _(kind: t.LocalZonedTimestampType) -> Renderer:
    return lambda value: _local_date_time(value.astimezone(UTC)) + "Z"


def _local_date_time(value: datetime) -> str:
    """LocalDateTime.toString, but seconds are always there."""
    text = value.strftime("%H:%M:%S")
    return f"{value.date().isoformat()}T{text}{_fraction(value.microsecond)}"


def _fraction(micros: int) -> str:
    if not micros:
        return ""
    return f".{micros // 1000:03d}" if micros % 1000 == 0 else f".{micros:06d}"


@_renderer.register
def _(kind: t.TimeType) -> Renderer:
    def show(millis: int) -> str:
        minutes, seconds = divmod(millis // 1000, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours:02d}:{minutes:02d}:{seconds:02d}{_fraction(millis % 1000 * 1000)}"

    return show


@_renderer.register(t.BinaryType)
@_renderer.register(t.VarBinaryType)
def _(kind: t.LogicalType) -> Renderer:
    return lambda value: "[" + ", ".join(str(b - 256 if b > 127 else b) for b in value) + "]"


@_renderer.register
def _(kind: t.ArrayType) -> Renderer:
    element = renderer(kind.element)
    return lambda value: "[" + ", ".join(map(element, value)) + "]"


@_renderer.register
def _(kind: t.MapType) -> Renderer:
    return _entries(renderer(kind.key), renderer(kind.value))


@_renderer.register
def _(kind: t.MultisetType) -> Renderer:
    return _entries(renderer(kind.element), str)


def _entries(key: Renderer, value: Renderer) -> Renderer:
    return lambda row: "{" + ", ".join(f"{key(e['key'])}={value(e['value'])}" for e in row) + "}"


@_renderer.register
def _(kind: t.RowType) -> Renderer:
    fields = [(f.name, renderer(f.type)) for f in kind.fields]
    return lambda row: "+I[" + ", ".join(show(row[name]) for name, show in fields) + "]"
