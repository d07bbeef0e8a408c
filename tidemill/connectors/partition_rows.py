"""Splits a table's rows by partition; the partition's values are texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.text.format_columns import RenderRules, render
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type


def split_by_partition(
    table: pa.Table, partitions: tuple[Field, ...]
) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """The rows of each partition, in the order of their first rows."""
    keys = [_texts(table, f) for f in partitions]
    combined = pa.StructArray.from_arrays(keys, names=[f.name for f in partitions])
    codes = np.asarray(_codes(combined))
    for code, values in enumerate(_distinct(combined)):
        yield values, table.filter(pa.array(codes == code))


def partition_texts(values: Mapping[str, object], partitions: Collection[Field]) -> dict[str, str | None]:
    """The texts of one partition's values."""
    columns = {f.name: pa.array([values[f.name]], arrow_type(f.type)) for f in partitions}
    table = pa.table(columns)
    return {f.name: _texts(table, f)[0].as_py() for f in partitions}


def _texts(table: pa.Table, column: Field) -> pa.Array:
    return render(column.type, table.column(column.name).combine_chunks(), RenderRules(plain_decimals=True))


def _distinct(keys: pa.StructArray) -> list[dict[str, str | None]]:
    """Distinct keys in the order of their first row, the order that ``_codes`` numbers them in."""
    distinct: dict[tuple[str | None, ...], dict[str, str | None]] = {}
    for row in pc.unique(_joined(keys)).to_pylist():
        values = json.loads(row)
        distinct.setdefault(tuple(values), dict(zip((f.name for f in keys.type), values, strict=True)))
    return list(distinct.values())


def _codes(keys: pa.StructArray) -> pa.Array:
    return _joined(keys).dictionary_encode().indices


def _joined(keys: pa.StructArray) -> pa.Array:
    """Each row's keys as one JSON text, made once per distinct value and column."""
    parts = []
    for child in keys.flatten():
        encoded = child.dictionary_encode()
        texts = pa.array([json.dumps(v) for v in encoded.dictionary.to_pylist()], pa.string())
        parts.append(pc.fill_null(texts.take(encoded.indices), "null"))
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*parts, ","), "]", "")
