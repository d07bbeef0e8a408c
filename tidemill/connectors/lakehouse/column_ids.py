"""How columns of a table are called in its files: a table format may know them by ids, so that they can get
other names."""

from __future__ import annotations

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"


def stored_names(wanted: pa.Schema, stored: pa.Schema) -> dict[str, str]:
    """By the name of the column; without those that the file does not have. Where only one of the two has
    ids, columns are known by their names."""
    ids = {_id(field): field.name for field in stored if _id(field)}
    named = {field.name: ids.get(_id(field)) if ids and _id(field) else field.name for field in wanted}
    return {name: found for name, found in named.items() if found is not None and found in stored.names}


def _id(field: pa.Field) -> bytes | None:
    found: bytes | None = (field.metadata or {}).get(FIELD_ID)
    return found
