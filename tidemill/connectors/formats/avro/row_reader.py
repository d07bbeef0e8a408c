"""Decodes Avro records into rows.

A record is read with its writer's schema, then cast to the table's types, as values of Parquet files are.
Columns are matched by name; a column that the writer's schema lacks is NULL. Cost: about a microsecond per
message of a flat record (``flat``), else a call of fastavro's compiled reader, some microseconds.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.avro.flat import flat_columns
from tidemill.connectors.formats.avro.schema import (
    Schema,
    UnreadableSchema,
    bare,
    branch,
    expanded,
    file_type_of,
)
from tidemill.connectors.formats.columnar.tables import check_names, from_file_table
from tidemill.types.logical import Field

_DAMAGE = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, StopIteration)
"""What fastavro raises of bytes that were not written with the schema."""


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows that were written with one schema. ``wanted``: the columns to read; ``schema``: the writer's
    record schema with only their fields; ``full``: the writer's schema. ``written`` and ``read`` are the
    parsed forms of ``full`` and ``schema``; ``read`` is None if all fields are read."""

    wanted: tuple[Field, ...]
    schema: Schema
    full: Schema
    written: Schema
    read: Schema | None

    @staticmethod
    def of(text: str, wanted: tuple[Field, ...], declared: tuple[str, ...]) -> RowReader:
        """A reader of the writer's schema ``text``. ``declared``: the names of all columns of the table.
        RecordError without a line if the schema does not fit."""
        try:
            full_schema = expanded(text)
        except UnreadableSchema as e:
            raise RecordError(f"The writer's schema does not fit: {e}.", line=-1, record=text) from None
        schema = branch(full_schema)
        check_names(wanted, declared, [f["name"] for f in schema["fields"]])
        names = {f.name for f in wanted}
        projected = {**schema, "fields": [f for f in schema["fields"] if f["name"] in names]}
        for field in wanted:
            if not field.type.nullable and all(f["name"] != field.name for f in projected["fields"]):
                raise RecordError(
                    f"The writer's schema has no field '{field.name}', which is NOT NULL.",
                    line=-1,
                    field=field.name,
                    record=text,
                )
        parsed = parse_schema(bare(full_schema))
        reads_all = len(projected["fields"]) == len(schema["fields"])
        return RowReader(
            wanted, projected, full_schema, parsed, None if reads_all else parse_schema(bare(projected))
        )

    def one(self, stream: io.BytesIO) -> Any:
        """The next record of ``stream``. RecordError without a line if the bytes are no such record."""
        try:
            record = schemaless_reader(stream, self.written, self.read)
            if record is None:
                raise ValueError("it is null")
            return record
        except _DAMAGE as e:
            expected = ", ".join(f["name"] for f in self.schema["fields"])
            raise RecordError(
                f"Failed to deserialize Avro record: it was not written with the schema of the fields"
                f" ({expected}): {e or type(e).__name__}.",
                line=-1,
            ) from None

    def table(self, records: Sequence[Any]) -> pa.Table:
        """``records`` as the wanted columns. RecordError names the column that does not fit."""
        if not self.wanted:
            return no_columns(len(records))
        columns = {f["name"]: _column(f, records) for f in self.schema["fields"]}
        return self._checked(pa.table(columns) if columns else no_columns(len(records)))

    def _checked(self, stored: pa.Table) -> pa.Table:
        table = from_file_table(stored, self.wanted)
        for field, column in zip(self.wanted, table.columns, strict=True):
            if column.null_count and not field.type.nullable:
                raise RecordError(
                    f"Column '{field.name}' is NOT NULL, a record has null.", line=-1, field=field.name
                )
        return table

    def numbered(self, messages: Sequence[tuple[int, bytes]]) -> pa.Table:
        """One row per message. RecordError has the number of the first message that does not fit."""
        flat = self._flat([message for _, message in messages])
        if flat is not None:
            return flat
        records = []
        for number, message in messages:
            try:
                records.append(self.one(io.BytesIO(message)))
            except RecordError as e:
                raise RecordError(e.reason, line=number, record=message.hex(" ")) from None
        try:
            return self.table(records)
        except RecordError as e:
            number = messages[self._first(records)][0]
            raise RecordError(e.reason, line=number, field=e.field, hint=e.hint) from None

    def _flat(self, messages: Sequence[bytes]) -> pa.Table | None:
        """Decodes all messages at once; None if the schema is not flat, or some message does not fit."""
        if not messages or not self.wanted or isinstance(self.full, list):
            return None
        columns = flat_columns(self.full, {f["name"] for f in self.schema["fields"]}, messages)
        if not columns:
            return None
        try:
            return self._checked(pa.table(columns))
        except RecordError:
            return None

    def _first(self, records: Sequence[Any]) -> int:
        for index, record in enumerate(records):
            try:
                self.table([record])
            except RecordError:
                return index
        return 0


def no_columns(rows: int) -> pa.Table:
    return pa.table({"$": pa.nulls(rows)}).select([])


def _column(field: Schema, records: Sequence[Any]) -> pa.Array:
    name = field["name"]
    try:
        kind = file_type_of(field["type"])
        return pa.array(_entries(field["type"], [r[name] for r in records]), kind)
    except (UnreadableSchema, pa.ArrowException, ValueError, OverflowError) as e:
        raise RecordError(f"Field '{name}' cannot be read: {e}", line=-1, field=name) from None


def _entries(schema: Schema, values: list[Any]) -> list[Any]:
    """``values`` with the dicts of maps as lists of entries, at any depth."""
    value_schema = branch(schema)
    if not isinstance(value_schema, dict) or not _has_maps(value_schema):
        return values
    if value_schema["type"] == "array":
        return [None if v is None else _entries(value_schema["items"], v) for v in values]
    if value_schema["type"] == "map":
        kind = value_schema["values"]
        return [
            None if v is None else list(zip(v, _entries(kind, list(v.values())), strict=True)) for v in values
        ]
    field_schemas = {f["name"]: f["type"] for f in value_schema["fields"]}
    return [
        None if v is None else {n: _entries(kind, [v[n]])[0] for n, kind in field_schemas.items()}
        for v in values
    ]


def _has_maps(schema: Schema) -> bool:
    value_schema = branch(schema)
    if not isinstance(value_schema, dict):
        return False
    nested = [value_schema.get("items"), *(f["type"] for f in value_schema.get("fields", ()))]
    return value_schema["type"] == "map" or any(
        _has_maps(schema_) for schema_ in nested if schema_ is not None
    )
