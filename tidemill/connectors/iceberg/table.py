"""An Iceberg table as pyiceberg sees it: its snapshots, their files, and whether we understand them.

Columns are found by their ids, as Iceberg demands: a column that was renamed has its old name in old files.
Files with row-level deletes are refused, and so are hidden partitions in sinks.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, TimestampType, TimestamptzType

from tidemill.connectors.iceberg.catalogs import CATALOG_ERRORS, catalog_of
from tidemill.connectors.lakehouse.bounds import Bounds
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.lakehouse.stored_types import check_columns, stored_field
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.file_snapshot import seen_once
from tidemill.files.storage import Storage
from tidemill.types.logical import Field

_WRITTEN = 2
"""The last format version that can be written: later ones number the rows."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergPlace:
    """Where a table is known; ``name``: as its user calls it; ``catalog``, ``options``: of its catalog;
    ``settings``: how workers reach the store."""

    name: str
    catalog: str
    options: tuple[tuple[str, str], ...]
    identifier: tuple[str, str]
    settings: tuple[tuple[str, str], ...] = ()

    def opened(self) -> Table:
        """ConnectorError where there is no such table."""
        try:
            return catalog_of(self.catalog, dict(self.options)).load_table(self.identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise ConnectorError(
                f"There is no Iceberg table {'.'.join(self.identifier)} in its catalog, which table"
                f" '{self.name}' is said to be.",
                hint="The first INSERT makes the table.",
            ) from None
        except CATALOG_ERRORS as e:
            raise self.failure(e) from None

    def seen(self) -> Table:
        """The newest snapshot, for all scans of a batch statement that of the first one."""
        return seen_once(self.opened, ("iceberg", self.catalog, self.options, self.identifier))

    def create(self, fields: Sequence[Field], partitions: Sequence[str], keys: Sequence[str] = ()) -> None:
        """A table without rows, and its namespace; one that is there stays. ``keys``: columns that identify
        rows."""
        schema = pa.schema([stored_field(field) for field in fields])
        catalog = catalog_of(self.catalog, dict(self.options))
        try:
            if catalog.table_exists(self.identifier):
                return
            catalog.create_namespace_if_not_exists(self.identifier[0])
            with catalog.create_table_transaction(self.identifier, schema) as made:
                with made.update_spec() as spec:
                    for name in partitions:
                        spec.add_identity(name)
                with made.update_schema() as columns:
                    columns.set_identifier_fields(*keys)
        except TableAlreadyExistsError:
            return
        except CATALOG_ERRORS as e:
            raise self.failure(e) from None

    def failure(self, error: Exception) -> ConnectorError:
        return ConnectorError(f"Iceberg table '{self.name}' ({'.'.join(self.identifier)}): {error}")

    def storage(self, table: Table) -> Storage:
        """The whole store: files of a table may lie anywhere in it."""
        return Storage(root_of(table.location()), self.settings)


def root_of(location: str) -> str:
    """``s3://bucket`` of a URI; a local path's is the root."""
    scheme, separator, rest = location.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if separator and scheme != "file" else "/"


def below_root(location: str, root: str) -> str:
    """A file's path below its store's root; NotSupportedError for one in another store."""
    if root == "/":
        if "://" in location and not location.startswith("file://"):
            raise NotSupportedError(f"An Iceberg table with files in several stores ({location})")
        return location.removeprefix("file:").lstrip("/")
    if not location.startswith(f"{root}/"):
        raise NotSupportedError(f"An Iceberg table with files in several stores ({location})")
    return location.removeprefix(f"{root}/")


def arrow_schema_of(schema: Schema) -> pa.Schema:
    """Of files of the schema, with the ids of columns; texts and bytes have small offsets, as here."""
    return pa.schema([_plain_field(field) for field in schema_to_pyarrow(schema)])


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind])
    return kind


def check_readable(place: IcebergPlace, table: Table, fields: Sequence[Field]) -> None:
    """ValidationError for columns that do not fit, NotSupportedError for nested ones that have changed."""
    check_columns(place.name, fields, arrow_schema_of(table.schema()), written=False)
    for field in fields:
        column = table.schema().find_field(field.name)
        if column.field_type.is_primitive:
            continue
        for schema in table.schemas().values():
            before = next((f for f in schema.fields if f.field_id == column.field_id), None)
            if before is not None and before.field_type != column.field_type:
                raise NotSupportedError(
                    f"Column '{field.name}' of Iceberg table '{place.name}', whose parts have changed"
                )


def check_writable(place: IcebergPlace, table: Table, fields: Sequence[Field], by: Sequence[str]) -> None:
    check_readable(place, table, fields)
    if table.metadata.format_version > _WRITTEN:
        raise NotSupportedError(
            f"To write Iceberg table '{place.name}', which has the format version"
            f" {table.metadata.format_version}"
        )
    check_columns(place.name, fields, arrow_schema_of(table.schema()), written=True)
    hidden = [f.name for f in table.spec().fields if not isinstance(f.transform, IdentityTransform)]
    if hidden:
        raise NotSupportedError(
            f"To write Iceberg table '{place.name}', which has the hidden partition '{hidden[0]}'"
        )
    found = [table.schema().find_column_name(f.source_id) for f in table.spec().fields]
    if found != list(by):
        raise ValidationError(
            f"Iceberg table '{place.name}' is partitioned by ({', '.join(map(str, found))}), but declared"
            f" with PARTITIONED BY ({', '.join(by)})."
        )


def snapshot_files(place: IcebergPlace, table: Table, snapshot: Snapshot) -> dict[str, IcebergFile]:
    """All data files of a snapshot, by path. NotSupportedError where rows of them are deleted."""
    found: dict[str, IcebergFile] = {}
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io):
            _check_file(place, entry.data_file)
            found[entry.data_file.file_path] = entry.data_file
    return dict(sorted(found.items()))


def _check_file(place: IcebergPlace, file: IcebergFile) -> None:
    if file.content != DataFileContent.DATA:
        raise NotSupportedError(
            f"Row-level deletes, which Iceberg table '{place.name}' has",
            hint="rewrite_data_files by another engine removes them.",
        )
    if file.file_format != FileFormat.PARQUET:
        raise NotSupportedError(f"Iceberg table '{place.name}' with files of {file.file_format.value}")


def data_files(table: Table, files: Iterable[IcebergFile], columns: Collection[str]) -> list[DataFile]:
    """As readers have them; bounds of ``columns``."""
    schema, specs, root = table.schema(), table.specs(), root_of(table.location())
    return [_data_file(file, schema, specs[file.spec_id], root, columns) for file in files]


def _data_file(
    file: IcebergFile, schema: Schema, spec: PartitionSpec, root: str, columns: Collection[str]
) -> DataFile:
    names = {field.field_id: field.name for field in schema.fields}
    partition = {
        names[field.source_id]: _value(schema, field, file.partition[place])
        for place, field in enumerate(spec.fields)
        if isinstance(field.transform, IdentityTransform) and field.source_id in names
    }
    rows = int(file.record_count)
    bounds = {name: Bounds.constant(value, rows) for name, value in partition.items()}
    bounds |= {n: _bounds(file, schema, n) for n in columns if n not in bounds and n in schema.column_names}
    return DataFile(
        path=below_root(file.file_path, root),
        size=int(file.file_size_in_bytes),
        rows=rows,
        partition=partition,
        bounds=bounds,
    )


def _value(schema: Schema, field: PartitionField, value: Any) -> object:
    return _python(schema.find_type(field.source_id), value)


def _python(kind: Any, value: Any) -> object:
    """As Arrow gives it: manifests have days and microseconds."""
    if isinstance(value, int) and isinstance(kind, DateType):
        return date(1970, 1, 1) + timedelta(days=value)
    if isinstance(value, int) and isinstance(kind, TimestamptzType):
        return _EPOCH + timedelta(microseconds=value)
    if isinstance(value, int) and isinstance(kind, TimestampType):
        return _EPOCH.replace(tzinfo=None) + timedelta(microseconds=value)
    return value


def _bounds(file: IcebergFile, schema: Schema, name: str) -> Bounds:
    field = schema.find_field(name)
    low, high = (
        None if found is None or field.field_id not in found else found[field.field_id]
        for found in (file.lower_bounds, file.upper_bounds)
    )
    kind = field.field_type
    nulls = (file.null_value_counts or {}).get(field.field_id)
    if low is None or high is None or not kind.is_primitive:
        return Bounds(None, None, nulls)
    try:
        return Bounds(_python(kind, from_bytes(kind, low)), _python(kind, from_bytes(kind, high)), nulls)
    except (struct.error, ValueError):
        return Bounds(None, None, nulls)  # of a narrower type that the column had
