"""Builds tables and reads them through a connector, as the epoch loop would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from tidemill.catalog.table import CatalogTable, Column, ColumnKind, ObjectPath
from tidemill.connectors.api import Offset, ReadLimit, Source, SourceRequest
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.registry import connector
from tidemill.types.logical import Field, LogicalType

Columns = Mapping[str, LogicalType]


def table(
    columns: Columns,
    options: Mapping[str, str],
    *,
    partitioned_by: tuple[str, ...] = (),
    metadata: Columns | None = None,
    primary_key: tuple[str, ...] = (),
) -> CatalogTable:
    physical = [Column(name=n, type=k) for n, k in columns.items()]
    extra = [Column(name=n, type=k, kind=ColumnKind.METADATA) for n, k in (metadata or {}).items()]
    return CatalogTable(
        path=ObjectPath("c", "d", "t"),
        columns=(*physical, *extra),
        options=dict(options),
        partitioned_by=partitioned_by,
        primary_key=primary_key,
    )


def source(
    declared: CatalogTable,
    *,
    fields: tuple[str, ...] | None = None,
    metadata: Mapping[str, str] | None = None,
    sequence: bool = False,
    streaming: bool = False,
    parallelism: int = 2,
    filters: tuple[ColumnFilter, ...] = (),
    limit: int | None = None,
) -> Source:
    types = {c.name: c.type for c in declared.columns}
    return connector(declared.options).source(
        SourceRequest(
            table=declared,
            options=declared.options,
            fields=tuple(Field(n, types[n]) for n in (types if fields is None else fields)),
            metadata=metadata or {},
            sequence=sequence,
            parallelism=parallelism,
            time_zone="UTC",
            streaming=streaming,
            filters=filters,
            limit=limit,
        )
    )


def rows(spark: SparkSession, read: Source) -> list[tuple[Any, ...]]:
    """Everything there is, in order where the source has one task."""
    return [tuple(r) for r in read.read_all(spark).collect()]


def rows_in_epochs(spark: SparkSession, read: Source, limit: ReadLimit) -> list[list[tuple[Any, ...]]]:
    """One list per range, each at most ``limit``."""
    epochs: list[list[tuple[Any, ...]]] = []
    start: Offset | None = None
    while not read.is_finished(start):
        end = read.next_offset(start, limit)
        epochs.append([tuple(r) for r in read.read(spark, start, end).collect()])
        start = end
    return epochs
