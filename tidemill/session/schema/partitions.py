"""Partitions of a table in the catalog: ADD and DROP PARTITION, and which of them SHOW PARTITIONS lists.

They are names alone: connectors read and write the partitions that are in their storage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidemill.catalog.table import CatalogTable, Partition
from tidemill.errors import ValidationError
from tidemill.sql import statements as s


def added(change: s.AddPartitions, table: CatalogTable) -> CatalogTable:
    partitions = list(table.partitions)
    for values, options in change.partitions:
        made = Partition(values=_ordered(values, table), options=options)
        if made.values not in [p.values for p in partitions]:
            partitions.append(made)
        elif not change.if_not_exists:
            raise ValidationError(f"Partition {_spec(values)} of table {_place(table)} already exists.")
    return replace(table, partitions=tuple(partitions))


def dropped(change: s.DropPartitions, table: CatalogTable) -> CatalogTable:
    partitions = table.partitions
    for values in change.partitions:
        gone = _ordered(values, table)
        left = tuple(p for p in partitions if p.values != gone)
        if len(left) == len(partitions) and not change.if_exists:
            raise ValidationError(f"Partition {_spec(values)} of table {_place(table)} does not exist.")
        partitions = left
    return replace(table, partitions=partitions)


def listed(table: CatalogTable, wanted: s.Options) -> list[str]:
    """Those that have the ``wanted`` values, in the order in which they were added."""
    if not table.partitioned_by:
        name = f"{table.path.database}.{table.path.name}"
        raise ValidationError(f"Table {name} in catalog {table.path.catalog} is not partitioned.")
    return [p.spec for p in table.partitions if set(wanted) <= set(p.values)]


def _ordered(values: s.Options, table: CatalogTable) -> tuple[tuple[str, str], ...]:
    given = dict(values)
    if set(given) != set(table.partitioned_by) or len(given) != len(values):
        keys = ", ".join(table.partitioned_by)
        raise ValidationError(
            f"PartitionSpec {_spec(values)} does not match partition keys [{keys}] of table {_place(table)}."
        )
    return tuple((name, given[name]) for name in table.partitioned_by)


def _spec(values: Iterable[tuple[str, str]]) -> str:
    return "CatalogPartitionSpec{{" + ", ".join(f"{name}={value}" for name, value in values) + "}}"


def _place(table: CatalogTable) -> str:
    return f"{table.path.database}.{table.path.name} in catalog {table.path.catalog}"
