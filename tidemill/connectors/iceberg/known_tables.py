"""Iceberg's catalogs as Flink's: namespaces are databases, their tables are read by the connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeVar

from pyiceberg import types as i
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from tidemill.catalog.table import CatalogTable, Column, ColumnKind, ObjectPath
from tidemill.connectors.iceberg.catalogs import CATALOG_ERRORS, catalog_of
from tidemill.connectors.iceberg.table import IcebergPlace
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

Answer = TypeVar("Answer")
_OF_TABLES = ("connector", "catalog-name", "catalog-database", "catalog-table")


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTables:
    """``name``: of the catalog, here and in its database; ``options``: CATALOG_OPTIONS that make it."""

    name: str
    options: Mapping[str, str]

    def databases(self) -> list[str]:
        return sorted(".".join(found) for found in self._asked(lambda c: c.list_namespaces()))

    def tables(self, database: str) -> list[str]:
        return sorted(found[-1] for found in self._asked(lambda c: c.list_tables(database)))

    def table(self, database: str, name: str) -> CatalogTable | None:
        """NotSupportedError for a table with types that Flink has no word for."""
        if not self._asked(lambda c: c.table_exists((database, name))):
            return None
        found = self._asked(lambda c: c.load_table((database, name)))
        schema = found.schema()
        keys = sorted(schema.identifier_field_names())
        columns = tuple(
            Column(name=f.name, type=_flink(f.field_type).with_nullable(not f.required), comment=f.doc or "")
            for f in schema.fields
        )
        return CatalogTable(
            path=ObjectPath(self.name, database, name),
            columns=columns,
            options={
                "connector": "iceberg",
                "catalog-name": self.name,
                "catalog-database": database,
                "catalog-table": name,
                **self.options,
            },
            primary_key=tuple(column.name for column in columns if column.name in keys),
            primary_key_name=f"PK_{'_'.join(keys)}" if keys else "",
            partitioned_by=_identities(schema, found.spec()),
            comment=found.properties.get("comment", ""),
        )

    def create_database(self, name: str) -> None:
        try:
            self._asked(lambda c: c.create_namespace(name))
        except NamespaceAlreadyExistsError:
            raise ValidationError(f"Database {name} already exists in Catalog {self.name}.") from None

    def drop_database(self, name: str) -> None:
        try:
            self._asked(lambda c: c.drop_namespace(name))
        except NamespaceNotEmptyError:
            raise ValidationError(
                f"Database {name} in catalog {self.name} is not empty.", hint="Drop its tables first."
            ) from None

    def create(self, table: CatalogTable) -> None:
        """NotSupportedError for what Iceberg's tables do not know."""
        self._check(table)
        place = IcebergPlace(
            name=str(table.path),
            catalog=self.name,
            options=tuple(sorted(self.options.items())),
            identifier=(table.path.database, table.path.name),
        )
        try:
            place.create(
                [Field(c.name, c.type) for c in table.columns], table.partitioned_by, table.primary_key
            )
        except TableAlreadyExistsError:
            raise ValidationError(
                f"Table (or view) {table.path.database}.{table.path.name} already exists in Catalog"
                f" {self.name}."
            ) from None

    def drop(self, database: str, name: str) -> None:
        """The table's files stay, as in Flink unless it is told otherwise."""
        self._asked(lambda c: c.drop_table((database, name)))

    def rename(self, database: str, name: str, other: str) -> None:
        self._asked(lambda c: c.rename_table((database, name), (database, other)))

    def _check(self, table: CatalogTable) -> None:
        odd = next((c for c in table.columns if c.kind is not ColumnKind.PHYSICAL), None)
        if odd is not None:
            raise NotSupportedError(f"The {odd.kind.value} column '{odd.name}' in an Iceberg catalog")
        if table.watermark is not None:
            raise NotSupportedError("A watermark of a table in an Iceberg catalog")
        given = [key for key in table.options if key not in _OF_TABLES]
        if table.options.get("connector", "iceberg") != "iceberg" or given:
            raise NotSupportedError(
                f"Options of a table in an Iceberg catalog ({', '.join(sorted(table.options))})",
                hint="Give them as hints: /*+ OPTIONS(...) */",
            )

    def _asked(self, ask: Callable[[Catalog], Answer]) -> Answer:
        try:
            return ask(catalog_of(self.name, self.options))
        except CATALOG_ERRORS as e:
            raise ConnectorError(f"The Iceberg catalog '{self.name}' cannot be used: {e}") from None


def _identities(schema: Schema, spec: PartitionSpec) -> tuple[str, ...]:
    return tuple(
        schema.find_field(f.source_id).name for f in spec.fields if isinstance(f.transform, IdentityTransform)
    )


_SIMPLE: dict[type[i.IcebergType], t.LogicalType] = {
    i.BooleanType: t.BooleanType(),
    i.IntegerType: t.INT,
    i.LongType: t.BIGINT,
    i.FloatType: t.FloatType(),
    i.DoubleType: t.DOUBLE,
    i.StringType: t.STRING,
    i.BinaryType: t.BYTES,
    i.DateType: t.DateType(),
    i.TimestampType: t.TimestampType(precision=6),
    i.TimestamptzType: t.LocalZonedTimestampType(precision=6),
}


@singledispatch
def _flink(kind: i.IcebergType) -> t.LogicalType:
    found = _SIMPLE.get(type(kind))
    if found is None:
        raise NotSupportedError(f"Iceberg's type '{kind}'")
    return found


@_flink.register
def _(kind: i.DecimalType) -> t.LogicalType:
    return t.DecimalType(precision=kind.precision, scale=kind.scale)


@_flink.register
def _(kind: i.ListType) -> t.LogicalType:
    return t.ArrayType(element=_flink(kind.element_type).with_nullable(not kind.element_required))


@_flink.register
def _(kind: i.MapType) -> t.LogicalType:
    value = _flink(kind.value_type).with_nullable(not kind.value_required)
    return t.MapType(key=_flink(kind.key_type).with_nullable(False), value=value)


@_flink.register
def _(kind: i.StructType) -> t.LogicalType:
    return t.RowType(
        fields=tuple(Field(f.name, _flink(f.field_type).with_nullable(not f.required)) for f in kind.fields)
    )
