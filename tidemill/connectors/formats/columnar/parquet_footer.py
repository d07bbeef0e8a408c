"""Reads from a Parquet file's footer how Spark's reader would read its columns.

Spark and Arrow both follow the format's specification. If only one of them supports a feature, or they are
known to differ (old calendars, codecs and encodings that Spark lacks), our decoders read the file.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tidemill.connectors.formats.native import MILLIS, NANOS, StoredColumns, StoredType

_CODECS = frozenset(("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"))
_ENCODINGS = frozenset(
    (
        *("PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"),
        *("DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
    )
)
_WRITER = b"org.apache.spark.version"
_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")

_SIGNED = {8: (pa.int8(), "TINYINT"), 16: (pa.int16(), "SMALLINT"), 32: (pa.int32(), "INT")}
_UNSIGNED = {8: (pa.uint8(), "SMALLINT"), 16: (pa.uint16(), "INT"), 32: (pa.uint32(), "BIGINT")}
_PLAIN: dict[str, tuple[pa.DataType, str]] = {
    "BOOLEAN": (pa.bool_(), "BOOLEAN"),
    "INT32": (pa.int32(), "INT"),
    "INT64": (pa.int64(), "BIGINT"),
    "INT96": (pa.timestamp("us"), "TIMESTAMP"),
    "FLOAT": (pa.float32(), "FLOAT"),
    "DOUBLE": (pa.float64(), "DOUBLE"),
    "BYTE_ARRAY": (pa.binary(), "BINARY"),
}
_DIGITS, _BYTES = 38, 16
"""The most digits and bytes of a DECIMAL. Spark truncates longer values, and fails on values of varying
length."""
_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def stored_columns(file: parquet.ParquetFile) -> StoredColumns | None:
    """Stored types by column name; None if Spark cannot read the file as a whole exactly."""
    metadata = file.metadata
    key_values = metadata.metadata or {}
    if _is_of_old_calendar(key_values, file.schema) or not _is_understood(metadata):
        return None
    if not metadata.num_columns:
        return None  # Spark's reader needs a column for the number of rows
    schema, arrow = file.schema, file.schema_arrow
    cached = next((k for k in tuple(_KNOWN) if k.arrow.equals(arrow) and k.schema.equals(schema)), None)
    if cached is None:
        cached = _Known(schema, arrow, _columns(schema, arrow))
        if not any(pa.types.is_nested(field.type) for field in arrow):
            _KNOWN.append(cached)
    return cached.columns


@dataclass(frozen=True, slots=True)
class _Known:
    """The cached result for a schema without nested types: Parquet's ``equals`` compares only leaves."""

    schema: Any
    arrow: pa.Schema
    columns: StoredColumns | None


_KNOWN: deque[_Known] = deque(maxlen=16)
"""Files of a table share a schema, and its analysis takes longer than the read of a footer."""


def _columns(schema: Any, arrow: pa.Schema) -> StoredColumns | None:
    paths: dict[str, list[Any]] = {}
    for leaf in (schema.column(i) for i in range(len(schema))):
        paths.setdefault(leaf.path.partition(".")[0], []).append(leaf)
    if len(set(arrow.names)) != len(arrow.names) or any("." in name for name in arrow.names):
        return None
    return {field.name: _column(field.type, paths.get(field.name, [])) for field in arrow}


def _is_of_old_calendar(key_values: dict[bytes, bytes], schema: Any) -> bool:
    """Whether Spark may convert old dates and times between calendars; our decoders never do. Spark also
    converts INT96 times of files that Spark up to 3.0 wrote."""
    version = key_values.get(_WRITER, b"9")
    if version < b"3" or any(key in key_values for key in _CALENDAR):
        return True
    return version < b"3.1" and any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))


def _is_understood(metadata: Any) -> bool:
    """Whether Spark has the codecs and encodings of the file, judged by its first row group."""
    if not metadata.num_row_groups:
        return True
    group = metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return all(c.compression in _CODECS and _ENCODINGS.issuperset(c.encodings) for c in chunks)


def _column(kind: pa.DataType, leaves: list[Any]) -> StoredType | None:
    """The stored type of a column; ``leaves``: the Parquet columns that it consists of, in order."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_nested(kind):
        return _nested(kind, leaves, 1)
    return _leaf(kind, leaves[0]) if len(leaves) == 1 and leaves[0].path.count(".") == 0 else None


def _nested(kind: pa.DataType, leaves: list[Any], depth: int) -> StoredType | None:
    """Lists and maps of three levels, as in the specification. ``depth``: the number of names in a leaf's
    path before the names of this type."""
    if pa.types.is_struct(kind):
        return _struct(kind, leaves, depth)
    if pa.types.is_map(kind) and _names(leaves, depth) == {"key_value"}:
        key = _part(kind.key_type, [x for x in leaves if _name(x, depth + 1) == "key"], depth + 2)
        value = _part(kind.item_type, [x for x in leaves if _name(x, depth + 1) == "value"], depth + 2)
        return None if key is None or value is None else StoredType("MAP", (("key", key), ("value", value)))
    if type(kind) is pa.ListType and _names(leaves, depth) == {"list"}:
        element = _part(kind.value_type, leaves, depth + 2)
        return None if element is None else StoredType("ARRAY", (("element", element),))
    return None


def _struct(kind: pa.DataType, leaves: list[Any], depth: int) -> StoredType | None:
    """A part that Spark would read differently gets the type '', which fits no declared type."""
    parts = []
    for field in kind:
        part = _part(field.type, [x for x in leaves if _name(x, depth) == field.name], depth + 1)
        parts.append((field.name, part or StoredType("")))
    names = [name for name, _ in parts]
    return StoredType("STRUCT", tuple(parts)) if len(set(names)) == len(names) else None


def _part(kind: pa.DataType, leaves: list[Any], depth: int) -> StoredType | None:
    if pa.types.is_nested(kind):
        return _nested(kind, leaves, depth)
    return _leaf(kind, leaves[0]) if len(leaves) == 1 and leaves[0].path.count(".") == depth - 1 else None


def _name(leaf: Any, depth: int) -> str:
    names = leaf.path.split(".")
    return str(names[depth]) if depth < len(names) else ""


def _names(leaves: list[Any], depth: int) -> set[str]:
    return {_name(leaf, depth) for leaf in leaves}


def _leaf(kind: pa.DataType, column: Any) -> StoredType | None:
    """None if Arrow's type of the column is not the one that the file's own types imply."""
    types = _spark_type(column)
    if types is None:
        return None
    expected, spark = types
    arrow_type = _LARGE.get(kind, kind)
    if pa.types.is_timestamp(arrow_type):
        arrow_type = pa.timestamp(arrow_type.unit, "UTC" if arrow_type.tz else None)
    return StoredType(spark) if arrow_type == expected else None


def _spark_type(column: Any) -> tuple[pa.DataType, str] | None:
    """The types that Arrow and Spark give a column, by the file's own types."""
    logical = json.loads(column.logical_type.to_json())
    match logical["Type"], column.physical_type:
        case "None", "FIXED_LEN_BYTE_ARRAY":
            return pa.binary(column.length), "BINARY"
        case "None", physical:
            return _PLAIN.get(physical)
        case "Int", _ if logical["bitWidth"] == 64:
            return (pa.int64(), "BIGINT") if logical["isSigned"] else None
        case "Int", _:
            return (_SIGNED if logical["isSigned"] else _UNSIGNED).get(logical["bitWidth"])
        case "String", _:
            return pa.string(), "STRING"
        case "Date", _:
            return pa.date32(), "DATE"
        case "Decimal", "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY":
            return _decimal(logical["precision"], logical["scale"], column.length)
        case "Timestamp", "INT64":
            return _timestamp(logical["timeUnit"], bool(logical["isAdjustedToUTC"]))
    return None


def _decimal(precision: int, scale: int, length: int) -> tuple[pa.DataType, str] | None:
    if precision > _DIGITS or length > _BYTES:
        return None
    return pa.decimal128(precision, scale), f"DECIMAL({precision},{scale})"


def _timestamp(unit: str, is_instant: bool) -> tuple[pa.DataType, str] | None:
    zone = "UTC" if is_instant else None
    if unit == "nanoseconds":
        return pa.timestamp("ns", zone), NANOS
    if unit == "milliseconds":
        return pa.timestamp("ms", zone), MILLIS if is_instant else "TIMESTAMP_NTZ"
    return pa.timestamp("us", zone), "TIMESTAMP" if is_instant else "TIMESTAMP_NTZ"
