"""Converts between tables and columnar files, for all columnar formats: columns are matched by name and cast
to the table's types; values are written with the files' types."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from tidemill.connectors.formats.api import RecordError
from tidemill.connectors.formats.column_names import mistaken
from tidemill.connectors.formats.columnar.carriers import file_type, from_file, to_file
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema, arrow_type


def from_file_table(table: pa.Table, fields: tuple[Field, ...]) -> pa.Table:
    """The ``fields`` of a file's rows; a column that the file lacks is NULL. RecordError names the column
    whose values do not fit."""
    if not fields:
        return table.select([])  # a table without columns keeps its number of rows
    columns = [_column(table, field) for field in fields]
    return pa.Table.from_arrays(columns, schema=arrow_schema(fields))


def check_names(wanted: tuple[Field, ...], declared: tuple[str, ...], there: Collection[str]) -> None:
    """RecordError if the name of a wanted column differs from one in the file only in upper and lower
    case."""
    problem = mistaken((f.name for f in wanted), declared, there)
    if problem:
        raise RecordError(problem, line=-1)


def _column(table: pa.Table, field: Field) -> pa.Array:
    count = table.column_names.count(field.name)
    if not count:
        return pa.nulls(table.num_rows, arrow_type(field.type))
    if count > 1:
        raise RecordError(f"There are {count} columns '{field.name}'", line=-1, field=field.name)
    stored = table.column(field.name)
    values = pa.nulls(0, stored.type) if stored.num_chunks == 0 else stored.combine_chunks()
    try:
        return from_file(field.type, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise RecordError(
            f"Column '{field.name}' holds {stored.type}, which does not fit {field.type}: {e}",
            line=-1,
            field=field.name,
        ) from None


def file_schema(fields: tuple[Field, ...]) -> pa.Schema:
    return pa.schema([(f.name, file_type(f.type)) for f in fields])


def to_file_table(table: pa.Table, fields: tuple[Field, ...]) -> pa.Table:
    columns = [to_file(f.type, table.column(f.name).combine_chunks()) for f in fields]
    return pa.Table.from_arrays(columns, schema=file_schema(fields))
