"""Converts rows of a Python program to carriers (``types.physical``): pandas frames, lists of elements.

A schema gives the columns' types, ``ROW<name TYPE, ...>``, or only their names; then the types come from the
values. A value that its type does not allow is an error that names column and row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.errors import ValidationError
from tidemill.session.arguments import shown
from tidemill.sql.parser import parse_type
from tidemill.types import logical as t
from tidemill.types.declared import at_precision, misfit
from tidemill.types.entries import in_order
from tidemill.types.physical import quote, spark_schema
from tidemill.user_functions.annotations import type_text
from tidemill.user_functions.values import carried, from_python, presented_type

if TYPE_CHECKING:
    import pandas as pd

Schema = str | Sequence[str] | None
Cells: TypeAlias = Sequence[Any] | pa.Array

_REFUSED = (pa.ArrowException, TypeError, ValueError, ArithmeticError, AttributeError)
_WIDEST_DECIMAL = 76


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """Columns of one length: their names and Flink's types, and their values in carriers."""

    fields: tuple[t.Field, ...]
    columns: tuple[pa.Array, ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        carriers = pa.table(list(self.columns), names=[f.name for f in self.fields])
        return spark.createDataFrame(carriers, spark_schema(self.fields))


def is_pandas(rows: object) -> TypeGuard[pd.DataFrame]:
    """Whether ``rows`` is a pandas frame. If nothing has imported pandas, there is no frame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, pandas.DataFrame)


def from_pandas(frame: pd.DataFrame, schema: Schema) -> ProgramRows:
    """The frame without its index. Timestamps are truncated to microseconds and time spans to milliseconds,
    categories become their values, and missing values (NaN, too) are NULL."""
    if not is_pandas(frame):
        raise ValidationError(f"from_pandas() takes a pandas DataFrame, not {shown(frame)}")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except _REFUSED as e:
        raise ValidationError(f"The pandas frame cannot be a table: {e}") from e
    columns = [_cells(column, frame, i) for i, column in enumerate(table.columns)]
    return _rows([str(name) for name in table.column_names], columns, schema)


def from_elements(elements: Iterable[Any], schema: Schema) -> ProgramRows:
    """Tuples or lists of one length, or plain values for one column; unnamed columns are ``_1``, …

    Of dicts the keys are columns; a key that a dict lacks is NULL there. Without declared types a dict inside
    an element is a MAP, a list an ARRAY, a tuple a ROW.
    """
    if not isinstance(elements, Iterable) or isinstance(elements, str | bytes | Mapping):
        raise ValidationError(f"from_elements() takes a list of elements, not {shown(elements)}")
    rows = list(elements)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return _rows_of_dicts(rows, schema)
    if any(isinstance(row, Mapping) for row in rows):
        raise ValidationError("from_elements(): some elements are dicts, others are not")
    rows = [_row(row) for row in rows]
    if not rows and not isinstance(schema, str):
        raise ValidationError(
            "from_elements() needs an element, or a schema ROW<name TYPE, ...> with the types"
        )
    if len({len(row) for row in rows}) > 1:
        raise ValidationError("from_elements(): the elements are not all of one length")
    width = len(rows[0]) if rows else len(_declared(schema) or ())
    columns = list(zip(*rows, strict=True)) or [()] * width
    return _rows([f"_{i}" for i in range(1, width + 1)], columns, schema)


def _rows_of_dicts(rows: Sequence[Mapping[str, Any]], schema: Schema) -> ProgramRows:
    keys = list(dict.fromkeys(chain.from_iterable(rows)))
    names = _schema_names(schema) or keys
    other = next((key for key in keys if key not in names), None)
    if other is not None:
        raise ValidationError(f"from_elements(): the schema has no column {shown(other)}")
    return _rows(names, [[row.get(name) for row in rows] for name in names], schema)


def _row(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, tuple | list) else (element,)


def _cells(column: pa.ChunkedArray, frame: pd.DataFrame, place: int) -> Cells:
    """Dicts stay Python values, since Arrow takes them for structs."""
    if pa.types.is_struct(column.type):
        cells = frame.iloc[:, place]
        return [cell if there else None for cell, there in zip(cells, cells.notna(), strict=True)]
    narrowed = column.cast(_narrow(column.type), safe=False)
    return narrowed.combine_chunks()


def _narrow(kind: pa.DataType) -> pa.DataType:
    """Times of day and time spans in milliseconds, timestamps in microseconds, as carriers have them, and the
    values of dictionaries."""
    if pa.types.is_dictionary(kind):
        return _narrow(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("ms")
    return pa.time32("ms") if pa.types.is_time64(kind) else kind


def _rows(names: Sequence[str], columns: Sequence[Cells], schema: Schema) -> ProgramRows:
    declared = _declared(schema)
    names = _schema_names(schema) or names
    if len(names) != len(columns):
        raise ValidationError(f"The schema has {len(names)} columns, the data has {len(columns)}")
    if not all(isinstance(name, str) for name in names):
        raise ValidationError(f"Column names must be texts, not {shown(names)}")
    if len(set(names)) != len(names):
        raise ValidationError(f"Column names are not unique: {names}")
    fields = declared or tuple(starmap(_inferred_field, zip(names, columns, strict=True)))
    return ProgramRows(fields, tuple(starmap(_column, zip(fields, columns, strict=True))))


def _schema_names(schema: Schema) -> list[str]:
    declared = _declared(schema)
    if declared is not None:
        return [f.name for f in declared]
    return [] if schema is None else list(schema)


def _declared(schema: Schema) -> tuple[t.Field, ...] | None:
    parsed = parse_type(schema) if isinstance(schema, str) else None
    if isinstance(parsed, t.RowType):
        return tuple(parsed.fields)
    names = isinstance(schema, Iterable) and not isinstance(schema, str)
    if schema is None or (names and all(isinstance(name, str) for name in schema)):
        return None
    raise ValidationError(f"A schema is a list of names or ROW<name TYPE, ...>, not {shown(schema)}")


def _inferred_field(name: str, cells: Cells) -> t.Field:
    try:
        text = type_text(cells.type) if isinstance(cells, pa.Array) else _inferred_text(cells)
    except _REFUSED as e:
        raise ValidationError(f"Column '{name}': {e}") from e
    return t.Field(name, parse_type(text))


def _inferred_text(cells: Iterable[Any]) -> str:
    """The text of a type of Python values, not all of them NULL."""
    there = [cell for cell in cells if cell is not None]
    if there and all(isinstance(cell, Mapping) for cell in there):
        key, value = (_inferred_text(chain.from_iterable(part)) for part in _keys_and_values(there))
        return f"MAP<{key}, {value}>"
    if there and all(isinstance(cell, tuple) for cell in there):
        return _row_text(there)
    if there and all(isinstance(cell, list) for cell in there):
        return f"ARRAY<{_inferred_text(chain.from_iterable(there))}>"
    inferred = pa.infer_type(there)
    if pa.types.is_null(inferred):
        raise TypeError("no value tells its type. A schema ROW<name TYPE, ...> gives it")
    return type_text(_narrow(inferred))


def _keys_and_values(maps: Sequence[Mapping[Any, Any]]) -> tuple[Iterable[Any], Iterable[Any]]:
    return [m.keys() for m in maps], [m.values() for m in maps]


def _row_text(rows: Sequence[tuple[Any, ...]]) -> str:
    names = getattr(rows[0], "names", ()) or [f"_{i}" for i in range(1, len(rows[0]) + 1)]
    parts = zip(names, zip(*rows, strict=True), strict=True)
    return "ROW<" + ", ".join(f"{quote(name)} {_inferred_text(cells)}" for name, cells in parts) + ">"


def _column(field: t.Field, cells: Cells) -> pa.Array:
    """The carriers of a column; ValidationError if a value is none of the type."""
    try:
        carriers = _carriers(cells, field.type)
    except _REFUSED as e:
        rows = (i for i in range(len(cells)) if not _can_be(cells[i : i + 1], field.type))
        row = next(rows, None)
        if row is None:
            raise ValidationError(f"Column '{field.name}': {e}") from e
        raise _refused(field, row, shown(cells[row])) from e
    if misfit(carriers, field.type, lengths=True):
        found = ((i, misfit(carriers[i : i + 1], field.type, lengths=True)) for i in range(len(carriers)))
        raise _refused(field, *next((row, said) for row, said in found if said))
    return carriers


def _refused(field: t.Field, row: int, found: str) -> ValidationError:
    return ValidationError(f"Column '{field.name}', row {row + 1}: {found} does not fit {field.type}")


def _carriers(cells: Cells, kind: t.LogicalType) -> pa.Array:
    if isinstance(cells, pa.Array):
        carriers = carried(_cast(cells, presented_type(kind)), kind)
    else:
        carriers = from_python(cells, kind)
    return in_order(at_precision(carriers, kind), kind)


def _can_be(cells: Cells, kind: t.LogicalType) -> bool:
    try:
        _carriers(cells, kind)
    except _REFUSED:
        return False
    return True


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if pa.types.is_integer(array.type) and pa.types.is_decimal(target):
        # Arrow asks for a type that has room for any integer.
        array = array.cast(pa.decimal256(_WIDEST_DECIMAL, target.scale))
    return array.cast(target)
