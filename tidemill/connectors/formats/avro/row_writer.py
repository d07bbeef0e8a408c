"""Encodes rows as Avro records. Cost: a call of fastavro's compiled writer per row, some microseconds."""

from __future__ import annotations

import io
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_writer
from fastavro.write import LOGICAL_WRITERS

from tidemill.connectors.formats.avro.schema import (
    Schema,
    UnreadableSchema,
    bare,
    branch,
    expanded,
    file_type_of,
)
from tidemill.connectors.formats.columnar.tables import to_file_table
from tidemill.errors import ConnectorError, ValidationError
from tidemill.types.logical import Field

_SHORTEST = "tidemill-decimal"
_EXACT = Context(prec=100)


def _shortest(value: Decimal, schema: Schema) -> bytes:
    """The unscaled number in the fewest bytes, as Java writes it, so that both engines write equal keys.
    fastavro uses one byte more for negative powers of 256."""
    number = int(value.scaleb(schema.get("scale", 0), _EXACT))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


LOGICAL_WRITERS[f"bytes-{_SHORTEST}"] = _shortest


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """``fields``: the columns to write, in the order of the fields of the schema ``text``."""

    fields: tuple[Field, ...]
    text: str

    def check(self) -> None:
        """ValidationError if the schema's fields are not the table's columns, in order."""
        names = [f["name"] for f in branch(self._schema())["fields"]]
        if names != [f.name for f in self.fields]:
            raise ValidationError(
                f"The Avro schema's fields [{', '.join(names)}] are not the table's columns"
                f" [{', '.join(f.name for f in self.fields)}]."
            )

    def records(self, table: pa.Table) -> list[bytes]:
        """One record per row. ConnectorError names the column with a value that Avro cannot hold."""
        full_schema = self._schema()
        record_schema, parsed = branch(full_schema), parse_schema(bare(full_schema, _SHORTEST))
        file_table = to_file_table(table, self.fields)
        columns = [_values(f, file_table.column(f["name"]).combine_chunks()) for f in record_schema["fields"]]
        names = [f["name"] for f in record_schema["fields"]]
        return [_written(parsed, dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def _schema(self) -> Schema:
        try:
            return expanded(self.text)
        except UnreadableSchema as e:
            raise ValidationError(f"The Avro schema cannot be used: {e}.") from None


def _values(field: Schema, values: pa.Array) -> list[Any]:
    """Python values for fastavro: times are numbers, maps are dicts."""
    try:
        kind = file_type_of(field["type"])
        file_values = values if values.type == kind else values.cast(kind)
        return list(file_values.cast(_numbers(kind)).to_pylist(maps_as_pydicts="strict"))
    except (UnreadableSchema, pa.ArrowException, UnicodeDecodeError, KeyError) as e:
        raise ConnectorError(f"Fail to serialize at field: {field['name']}. {e}") from None


def _numbers(kind: pa.DataType) -> pa.DataType:
    """``kind`` with numbers in place of times."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_numbers(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _numbers(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_numbers(field.type)) for field in kind])
    return kind


def _written(schema: Schema, record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    try:
        schemaless_writer(stream, schema, record)
    except (ValueError, TypeError, OverflowError, AttributeError) as e:
        raise ConnectorError(f"Cannot write a row as an Avro record: {e}") from None
    return stream.getvalue()
