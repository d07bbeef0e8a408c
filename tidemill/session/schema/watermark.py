"""WATERMARK FOR column AS expression: the time column and the expression must be timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.catalog.table import CatalogTable, WatermarkSpec
from tidemill.errors import ValidationError
from tidemill.session.schema.columns import TypeOf, find
from tidemill.sql.statements import Watermark
from tidemill.types.logical import LocalZonedTimestampType, LogicalType, TimestampType

MAX_PRECISION = 3


def with_watermark(table: CatalogTable, watermarks: Sequence[Watermark], type_of: TypeOf) -> CatalogTable:
    """The table with its watermark, checked; ``watermarks`` has none or one."""
    if len(watermarks) > 1:
        raise ValidationError(
            "Multiple WATERMARK declarations are not supported yet.", position=watermarks[1].position
        )
    if not watermarks:
        return table
    watermark = watermarks[0]
    name = ".".join(watermark.column)
    column = find(table.columns, name)
    if column is None:
        available = ", ".join(f"'{c.name}'" for c in table.columns)
        raise ValidationError(
            f"The rowtime attribute field '{name}' is not defined in the table schema, at "
            f"{watermark.position}\nAvailable fields: [{available}]",
            position=watermark.position,
        )
    _check_time("time field", "time field", column.type.with_nullable(True), watermark)
    _check_time("expression", "watermark expression", type_of(watermark.expression, table), watermark)
    return replace(table, watermark=WatermarkSpec(column=name, expression=watermark.expression))


def _check_time(what: str, whose: str, kind: LogicalType, watermark: Watermark) -> None:
    if isinstance(kind, TimestampType | LocalZonedTimestampType) and kind.precision <= MAX_PRECISION:
        return
    raise ValidationError(
        f"Invalid data type of {what} for watermark definition. The field must be of type TIMESTAMP(p) or "
        f"TIMESTAMP_LTZ(p), the supported precision 'p' is from 0 to {MAX_PRECISION}, but the {whose} type "
        f"is {kind}",
        position=watermark.position,
    )
