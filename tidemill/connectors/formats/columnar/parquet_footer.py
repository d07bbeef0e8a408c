"""What a Parquet file's columns are for Spark's reader, from its footer.

Both libraries read what the format's specification says; what one of them alone understands, or is known to
understand otherwise (old calendars, codecs and encodings that Spark lacks), is left to ours.
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
"""Of a DECIMAL. Spark cuts what is in more bytes, and fails where each value has a length of its own."""
_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def stored_columns(file: parquet.ParquetFile) -> StoredColumns | None:
    """By name; None for a file that Spark's reader would read otherwise as a whole."""
    metadata = file.metadata
    written = metadata.metadata or {}
    if _is_of_old_calendar(written, file.schema) or not _is_understood(metadata):
        return None
    if not metadata.num_columns:
        return None  # Spark's looks at the first for how many rows there are
    schema, arrow = file.schema, file.schema_arrow
    known = next((k for k in tuple(_KNOWN) if k.arrow.equals(arrow) and k.schema.equals(schema)), None)
    if known is None:
        known = _Known(schema, arrow, _columns(schema, arrow))
        if not any(pa.types.is_nested(field.type) for field in arrow):
            _KNOWN.append(known)
    return known.columns


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of a schema. Without nested types: Parquet's ``equals`` looks at leaves, not at what is
    around them."""

    schema: Any
    arrow: pa.Schema
    columns: StoredColumns | None


_KNOWN: deque[_Known] = deque(maxlen=16)
"""A table of a thousand files has one schema, which takes longer to look at than to read."""


def _columns(schema: Any, arrow: pa.Schema) -> StoredColumns | None:
    paths: dict[str, list[Any]] = {}
    for leaf in (schema.column(i) for i in range(len(schema))):
        paths.setdefault(leaf.path.partition(".")[0], []).append(leaf)
    if len(set(arrow.names)) != len(arrow.names) or any("." in name for name in arrow.names):
        return None
    return {field.name: _column(field.type, paths.get(field.name, [])) for field in arrow}


def _is_of_old_calendar(written: dict[bytes, bytes], schema: Any) -> bool:
    """Whether Spark may shift times of long ago when it reads them; we never do. Those of twelve bytes it
    shifts in files of its own up to 3.0."""
    version = written.get(_WRITER, b"9")
    if version < b"3" or any(key in written for key in _CALENDAR):
        return True
    return version < b"3.1" and any(schema.column(i).physical_type == "INT96" for i in range(len(schema)))


def _is_understood(metadata: Any) -> bool:
    """Whether Spark can unpack the file; what its first rows are packed with, all are."""
    if not metadata.num_row_groups:
        return True
    group = metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return all(c.compression in _CODECS and _ENCODINGS.issuperset(c.encodings) for c in chunks)


def _column(kind: pa.DataType, leaves: list[Any]) -> StoredType | None:
    """``leaves``: the columns that it is made of, in order."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_nested(kind):
        return _nested(kind, leaves, 1)
    return _leaf(kind, leaves[0]) if len(leaves) == 1 and leaves[0].path.count(".") == 0 else None


def _nested(kind: pa.DataType, leaves: list[Any], depth: int) -> StoredType | None:
    """Lists and maps of three levels, as the specification has them; ``depth``: names in a leaf's path before
    this type's own."""
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
    """Parts that Spark does not read as we do are as good as of a type that fits none."""
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
    """None where Arrow makes something else of the column than the file's own types say."""
    found = _spark_type(column)
    if found is None:
        return None
    expected, spark = found
    given = _LARGE.get(kind, kind)
    if pa.types.is_timestamp(given):
        given = pa.timestamp(given.unit, "UTC" if given.tz else None)
    return StoredType(spark) if given == expected else None


def _spark_type(column: Any) -> tuple[pa.DataType, str] | None:
    """What Arrow and Spark make of a column by the file's own types."""
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
