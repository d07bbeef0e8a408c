"""Rows as Avro's binary values and back.

A value is read by the schema that it was written with, then cast to the table's types as values of Parquet
files are: columns are found by name, a column that the writer did not have is NULL. Cost: a call of
fastavro's compiled reader or writer per row, a few microseconds.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.write import LOGICAL_WRITERS

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
from tidemill.connectors.formats.columnar.tables import check_names, from_file_table, to_file_table
from tidemill.errors import ConnectorError, ValidationError
from tidemill.types.logical import Field

_DAMAGE = (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, StopIteration)
"""What fastavro raises of bytes that were not written with the schema."""

_SHORTEST = "tidemill-decimal"
_EXACT = Context(prec=100)


def _shortest(value: Decimal, schema: Schema) -> bytes:
    """The unscaled number in as few bytes as there are, as Java has it: a key has the same bytes from both
    engines. fastavro takes one more for the negative powers of 256."""
    number = int(value.scaleb(schema.get("scale", 0), _EXACT))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


LOGICAL_WRITERS[f"bytes-{_SHORTEST}"] = _shortest


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows that were written with one schema; ``wanted``: of which columns, ``declared``: the names of
    all that the table has."""

    wanted: tuple[Field, ...]
    schema: Schema
    full: Schema
    written: Schema
    read: Schema | None

    @staticmethod
    def of(text: str, wanted: tuple[Field, ...], declared: tuple[str, ...]) -> RowReader:
        """RecordError without a line where the schema ``text`` does not fit."""
        try:
            found = expanded(text)
        except UnreadableSchema as e:
            raise RecordError(f"The writer's schema does not fit: {e}.", line=-1, record=text) from None
        schema = branch(found)
        check_names(wanted, declared, [f["name"] for f in schema["fields"]])
        names = {f.name for f in wanted}
        chosen = {**schema, "fields": [f for f in schema["fields"] if f["name"] in names]}
        for field in wanted:
            if not field.type.nullable and all(f["name"] != field.name for f in chosen["fields"]):
                raise RecordError(
                    f"The writer's schema has no field '{field.name}', which is NOT NULL.",
                    line=-1,
                    field=field.name,
                    record=text,
                )
        written = parse_schema(bare(found))
        all_of_it = len(chosen["fields"]) == len(schema["fields"])
        return RowReader(wanted, chosen, found, written, None if all_of_it else parse_schema(bare(chosen)))

    def one(self, stream: io.BytesIO) -> Any:
        """The next record. RecordError without a line where the bytes do not fit."""
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
        """A row of each message. RecordError has the number of the first message that does not fit."""
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
        """All at once; None where that is not possible, or some message does not fit."""
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
        for number, record in enumerate(records):
            try:
                self.table([record])
            except RecordError:
                return number
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
    found = branch(schema)
    if not isinstance(found, dict) or not _has_maps(found):
        return values
    if found["type"] == "array":
        return [None if v is None else _entries(found["items"], v) for v in values]
    if found["type"] == "map":
        kind = found["values"]
        return [
            None if v is None else list(zip(v, _entries(kind, list(v.values())), strict=True)) for v in values
        ]
    parts = {f["name"]: f["type"] for f in found["fields"]}
    return [
        None if v is None else {n: _entries(kind, [v[n]])[0] for n, kind in parts.items()} for v in values
    ]


def _has_maps(schema: Schema) -> bool:
    found = branch(schema)
    if not isinstance(found, dict):
        return False
    parts = [found.get("items"), *(f["type"] for f in found.get("fields", ()))]
    return found["type"] == "map" or any(_has_maps(part) for part in parts if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """``fields``: the columns to write, in the order of the fields of the schema ``text``."""

    fields: tuple[Field, ...]
    text: str

    def check(self) -> None:
        """ValidationError where a given schema does not have the table's fields."""
        names = [f["name"] for f in branch(self._schema())["fields"]]
        if names != [f.name for f in self.fields]:
            raise ValidationError(
                f"The Avro schema's fields [{', '.join(names)}] are not the table's columns"
                f" [{', '.join(f.name for f in self.fields)}]."
            )

    def records(self, table: pa.Table) -> list[bytes]:
        """A record per row. ConnectorError names the column whose values cannot be written."""
        found = self._schema()
        schema, written = branch(found), parse_schema(bare(found, _SHORTEST))
        stored = to_file_table(table, self.fields)
        columns = [_values(f, stored.column(f["name"]).combine_chunks()) for f in schema["fields"]]
        names = [f["name"] for f in schema["fields"]]
        return [_written(written, dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def _schema(self) -> Schema:
        try:
            return expanded(self.text)
        except UnreadableSchema as e:
            raise ValidationError(f"The Avro schema cannot be used: {e}.") from None


def _values(field: Schema, values: pa.Array) -> list[Any]:
    """Numbers for times, dicts for maps."""
    try:
        kind = file_type_of(field["type"])
        found = values if values.type == kind else values.cast(kind)
        return list(found.cast(_numbers(kind)).to_pylist(maps_as_pydicts="strict"))
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
