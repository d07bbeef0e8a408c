"""``mapInArrow`` with a cached schema: PySpark would let the JVM parse the DDL for every frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from tidemill.connectors.api import BatchMap
from tidemill.types.physical import quote


def map_batches(frame: DataFrame, function: BatchMap, schema: str) -> DataFrame:
    """Applies ``function`` to the frame's batches. ``schema``: DDL of the resulting batches.

    PySpark reads a dot in a column's name as a path into a struct, and a backtick as an error: such columns
    get other names for Spark, and ``function`` gets batches with their own.
    """
    names = frame.columns
    if any(letter in name for name in names for letter in ".`"):
        plain = frame.toDF(*(f"c{place}" for place in range(len(names))))
        return plain.mapInArrow(_Renamed(function=function, names=tuple(names)), _parsed(schema))
    return frame.mapInArrow(function, _parsed(schema))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renamed:
    """Gives ``function`` batches whose columns have ``names``."""

    function: BatchMap
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.function(batch.rename_columns(list(self.names)) for batch in batches)


def type_text(kind: DataType) -> str:
    """A type for such a schema, nullable throughout; ``simpleString`` does not quote names of fields."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quote(f.name)}: {type_text(f.dataType)}' for f in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString()


@lru_cache(maxsize=4096)
def _parsed(schema: str) -> StructType:
    struct = StructType.fromDDL(schema)
    assert isinstance(struct, StructType)
    return struct
