"""Column definitions of a statement -> catalog columns, and the checks on their names.

Computed columns may use physical and metadata columns, not each other; primary key columns are NOT
NULL before computed columns get their types, so that a computed column over them is NOT NULL too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch

from tidemill.catalog.table import CatalogTable, Column, ColumnKind
from tidemill.errors import Position, ValidationError
from tidemill.sql import statements as s
from tidemill.types.logical import LogicalType, NullType

TypeOf = Callable[[str, CatalogTable], LogicalType]
"""The type of an expression text over a table's columns."""

_UNTYPED = NullType()


@singledispatch
def declared(definition: s.ColumnDefinition) -> Column:
    """The catalog's column; a computed one has no type yet."""
    raise TypeError(type(definition).__name__)


@declared.register
def _(definition: s.PhysicalColumn) -> Column:
    return Column(name=definition.name, type=definition.type, comment=definition.comment)


@declared.register
def _(definition: s.MetadataColumn) -> Column:
    return Column(
        name=definition.name,
        type=definition.type,
        kind=ColumnKind.METADATA,
        metadata_key=definition.key,
        virtual=definition.virtual,
        comment=definition.comment,
    )


@declared.register
def _(definition: s.ComputedColumn) -> Column:
    return Column(
        name=definition.name,
        type=_UNTYPED,
        kind=ColumnKind.COMPUTED,
        expression=definition.expression,
        comment=definition.comment,
    )


_WORDS = {ColumnKind.PHYSICAL: "regular", ColumnKind.COMPUTED: "generated", ColumnKind.METADATA: "metadata"}


def check_unique(definitions: Iterable[s.ColumnDefinition]) -> None:
    """Refuses a name that is declared twice."""
    seen: dict[str, ColumnKind] = {}
    for definition in definitions:
        name = definition.name
        if name in seen:
            raise ValidationError(
                f"A {_WORDS[seen[name]]} Column named '{name}' already exists in the table.",
                position=definition.position,
            )
        seen[name] = declared(definition).kind


def typed(table: CatalogTable, type_of: TypeOf) -> CatalogTable:
    """The table with a type for every computed column."""
    visible = replace(
        table, columns=tuple(c for c in table.columns if c.kind is not ColumnKind.COMPUTED), watermark=None
    )
    columns = tuple(
        replace(c, type=type_of(c.expression, visible)) if c.kind is ColumnKind.COMPUTED else c
        for c in table.columns
    )
    return replace(table, columns=columns)


def check_partitions(table: CatalogTable, position: Position) -> None:
    """Partition columns must be columns of the table."""
    names = [c.name for c in table.columns]
    for column in table.partitioned_by:
        if column not in names:
            raise ValidationError(
                f"Partition column '{column}' not defined in the table schema. Available columns: "
                f"{_listed(names)}",
                position=position,
            )


def check_distribution(table: CatalogTable, position: Position | None) -> None:
    """Columns of a distribution must be physical columns of the table, and there must be a bucket."""
    made = table.distribution
    if made is None:
        return
    if made.buckets is not None and made.buckets < 1:
        raise ValidationError("Bucket count must be a positive integer.", position=position)
    names = [c.name for c in table.physical_columns]
    for column in made.columns:
        if column not in names:
            raise ValidationError(
                f"Invalid bucket key '{column}'. A bucket key for a distribution must reference a physical "
                f"column in the schema. Available columns are: [{', '.join(names)}]",
                position=position,
            )


def find(columns: Sequence[Column], name: str) -> Column | None:
    return next((c for c in columns if c.name == name), None)


def _listed(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{n}'" for n in names) + "]"
