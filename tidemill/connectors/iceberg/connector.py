"""The ``iceberg`` connector: tables of Apache Iceberg on local disks and object stores, over pyiceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.catalog.kinds import DEFAULT_DATABASE
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, UPSERT, RowKind
from tidemill.connectors.api import Connector, Sink, SinkRequest, SourceRequest
from tidemill.connectors.filters import columns_of
from tidemill.connectors.iceberg.catalogs import catalog_files, is_path, properties
from tidemill.connectors.iceberg.history import IcebergHistory
from tidemill.connectors.iceberg.known_tables import IcebergTables
from tidemill.connectors.iceberg.options import AS_OF, CATALOG_OPTIONS, OPTIONS
from tidemill.connectors.iceberg.reading import IcebergReader
from tidemill.connectors.iceberg.table import (
    IcebergPlace,
    arrow_schema_of,
    below_root,
    data_files,
    root_of,
    snapshot_files,
)
from tidemill.connectors.iceberg.target import IcebergTarget
from tidemill.connectors.lakehouse.buckets import bucket_keys
from tidemill.connectors.lakehouse.commits import Commits
from tidemill.connectors.lakehouse.reading import METADATA, ROW_FILE
from tidemill.connectors.lakehouse.rewriting import chosen_files, part_of, refuse_versions
from tidemill.connectors.lakehouse.sink import empty
from tidemill.connectors.lakehouse.source import LakeSource
from tidemill.connectors.lakehouse.stored_types import stored_field
from tidemill.connectors.lakehouse.upserts import lake_sink
from tidemill.connectors.lakehouse.writing import LakeWriter
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.fence import Fence
from tidemill.files.systems import SETTINGS
from tidemill.types import logical as t
from tidemill.types.logical import Field

_TRAVEL = ("snapshot-id", AS_OF)


class IcebergConnector(Connector):
    identifier = "iceberg"
    options = OPTIONS
    is_source = True
    is_sink = True
    changes_rows = True
    time_option = AS_OF
    row_file = ROW_FILE

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        for column in table.physical_columns:
            stored_field(Field(column.name, column.type))
            if isinstance(column.type, t.TinyIntType | t.SmallIntType):
                raise NotSupportedError(
                    f"Column '{column.name}': Iceberg tables have no type for {column.type}",
                    hint="Declare it as INT.",
                )
        properties(options)
        if table.primary_key:
            bucket_keys(table)
        given = [key for key in (*_TRAVEL, "start-snapshot-id") if key in options]
        if len(given) > 1:
            raise ValidationError(f"Only one of {', '.join(given)} can be given.")
        follows = OptionValues(OPTIONS, options)["streaming"]
        if given and follows != (given[0] == "start-snapshot-id"):
            raise ValidationError(f"'{given[0]}' is for 'streaming' = '{str(not follows).lower()}'.")

    def fixed_columns(self, table: CatalogTable, options: Mapping[str, str]) -> tuple[str, ...] | None:
        refuse_versions(table, _TRAVEL)
        return super().fixed_columns(table, options)

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, t.LogicalType]:
        return METADATA

    def source(self, request: SourceRequest) -> LakeSource:
        options, place = OptionValues(OPTIONS, request.options), _place(request.table, request.options)
        follows = options["streaming"]
        if follows and not request.streaming:
            raise ValidationError(
                f"Querying an unbounded table '{request.table.path}' in batch mode is not allowed."
                " The table source is unbounded.",
                hint="Leave 'streaming' = 'true' out, or set execution.runtime-mode to streaming.",
            )
        table, rewriting = place.opened(), request.table.rewriting
        history = IcebergHistory(
            place=place,
            columns=_fields(request.table),
            bounded=tuple(sorted({name for f in request.filters for name in columns_of(f)})),
            snapshot=options["snapshot-id"] if rewriting is None else rewriting.version,
            as_of=options[AS_OF],
            after=options["start-snapshot-id"],
            interval=options["monitor-interval"].seconds,
        )
        reader = IcebergReader(
            table=place.name,
            storage=place.storage(table),
            fields=request.fields,
            sequence=request.sequence,
            places=tuple(request.metadata.items()),
            limit=request.limit,
            ids={field.name: field.field_id for field in table.schema().fields},
        )
        return LakeSource(
            history=history,
            reader=reader,
            filters=request.filters,
            parallelism=max(request.parallelism, 1),
            follows=follows,
            chosen=chosen_files(request.table),
        )

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return UPSERT if table.primary_key else INSERT_ONLY

    def sink(self, request: SinkRequest) -> Sink:
        """ConnectorError where the catalog cannot be reached; ValidationError where the table has other
        columns."""
        request.refuse_streaming_overwrite()
        options, place = OptionValues(OPTIONS, request.options), _place(request.table, request.options)
        columns, by = _fields(request.table), request.table.partitioned_by
        place.create(columns, by)
        target = IcebergTarget(place=place, fields=columns, partitions=by)
        target.newest().check(removes=False)
        name = f"{request.job_id}-{request.ordinal}"
        commits = Commits(target=target, table=place.name, sink=name)
        writer = _writer(request, place, options)
        directory = f"{writer.directory.removesuffix('/data')}/_tidemill/{name}"
        return lake_sink(request, commits, writer, directory, options["sink.buckets"])

    def check_rewriting(self, table: CatalogTable, statement: str) -> None:
        place = _place(table, table.options)
        target = IcebergTarget(place=place, fields=_fields(table), partitions=table.partitioned_by)
        target.newest().check(removes=True)

    def rewritten(
        self, table: CatalogTable, files: Mapping[str, int], statement: str, time_zone: str, fence: Fence
    ) -> CatalogTable:
        place = _place(table, table.options)
        seen = place.seen()
        snapshot = seen.current_snapshot()
        assert snapshot is not None  # it has the files
        listed = data_files(seen, snapshot_files(place, seen, snapshot).values(), ())
        return part_of(table, listed, files, place.storage(seen), statement, int(snapshot.snapshot_id))

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        place = _place(table, options)
        target = IcebergTarget(place=place, fields=_fields(table), partitions=table.partitioned_by)
        empty(target, place.name)

    def catalog_options(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Any property of pyiceberg's is taken, as Iceberg's own catalog for Flink does."""
        known = {option.key for option in CATALOG_OPTIONS if option.kind != "map"}
        own = {k: v for k, v in given.items() if k not in ("type", "property-version", DEFAULT_DATABASE)}
        options = {key if key in known else f"catalog.{key}": value for key, value in own.items()}
        properties(options)
        return options

    def catalog(self, name: str, options: Mapping[str, str]) -> IcebergTables:
        return IcebergTables(name=name, options=options)

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        return {"warehouse": options["warehouse"]} if "warehouse" in options else {}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The tables, and the catalog where it is a file."""
        if "warehouse" in options:
            yield "warehouse", options["warehouse"]
        yield from (("uri", place) for place in catalog_files(options.get("uri", "")))
        yield from ((k, v) for k, v in options.items() if k.startswith("catalog.") and is_path(v))


def _place(table: CatalogTable, options: Mapping[str, str]) -> IcebergPlace:
    given = OptionValues(OPTIONS, options)
    known = {option.key for option in CATALOG_OPTIONS if option.kind != "map"}
    return IcebergPlace(
        name=str(table.path),
        catalog=given["catalog-name"],
        options=tuple(sorted((k, v) for k, v in options.items() if k in known or k.startswith("catalog."))),
        identifier=(given["catalog-database"], given["catalog-table"] or table.path.name),
        settings=tuple((key, options[key]) for key in SETTINGS if key in options),
    )


def _fields(table: CatalogTable) -> tuple[Field, ...]:
    return tuple(Field(c.name, c.type) for c in table.physical_columns)


def _writer(request: SinkRequest, place: IcebergPlace, options: OptionValues) -> LakeWriter:
    """Iceberg's files hold the partition columns, too."""
    table, columns = place.opened(), _fields(request.table)
    stored = arrow_schema_of(table.schema())
    return LakeWriter(
        table=place.name,
        storage=place.storage(table),
        fields=columns if len(columns) == len(request.fields) else request.fields,
        partitions=tuple(f for n in request.table.partitioned_by for f in columns if f.name == n),
        schema=stored,
        prefix=f"part-{request.job_id[:8]}",
        roll=options["sink.target-file-size"].bytes,
        compression=options["compression"].lower(),
        directory=below_root(f"{table.location()}/data", root_of(table.location())),
    )


CONNECTOR = IcebergConnector()
