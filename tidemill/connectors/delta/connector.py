"""The ``delta`` connector: tables of Delta Lake on local disks and S3, over the library deltalake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, UPSERT, RowKind
from tidemill.connectors.api import Connector, Sink, SinkRequest, SourceRequest
from tidemill.connectors.delta.commit_file import put_first
from tidemill.connectors.delta.files import VectorLog, active_files, stored_bytes
from tidemill.connectors.delta.history import DeltaHistory
from tidemill.connectors.delta.options import AS_OF_MILLIS, OPTIONS, STREAMING
from tidemill.connectors.delta.table import DeltaPlace, has_feed, has_vectors
from tidemill.connectors.delta.target import DeltaTarget
from tidemill.connectors.delta.vectors import PROPERTY
from tidemill.connectors.filters import columns_of
from tidemill.connectors.formats.columnar.tables import file_schema
from tidemill.connectors.lakehouse.buckets import bucket_keys
from tidemill.connectors.lakehouse.commits import Commits
from tidemill.connectors.lakehouse.reading import CHANGE_TYPE, METADATA, ROW_FILE, LakeReader
from tidemill.connectors.lakehouse.rewriting import (
    chosen_files,
    part_of,
    refuse_versions,
)
from tidemill.connectors.lakehouse.sink import empty
from tidemill.connectors.lakehouse.source import LakeSource
from tidemill.connectors.lakehouse.stored_types import stored_field
from tidemill.connectors.lakehouse.upserts import lake_sink
from tidemill.connectors.lakehouse.writing import LakeWriter
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ConnectorError, ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.types.logical import Field, LogicalType

_TRAVEL = ("versionAsOf", "timestampAsOf", AS_OF_MILLIS)
_CHANGES = "_change_data"
"""The folder of files that say what has changed, as Delta's protocol has it."""
_UNPACKED = 6
"""How much larger files are taken to be once decoded."""


class DeltaConnector(Connector):
    identifier = "delta"
    options = OPTIONS
    is_source = True
    is_sink = True
    changes_rows = True
    time_option = AS_OF_MILLIS
    row_file = ROW_FILE

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        for column in table.physical_columns:
            stored_field(Field(column.name, column.type))
        given = [key for key in _TRAVEL if key in options]
        if len(given) > 1:
            raise ValidationError(f"Only one of {', '.join(given)} can be given.")
        follows = OptionValues(OPTIONS, options)["mode"].lower() == STREAMING
        if given and follows:
            raise ValidationError(f"'{given[0]}' reads one version, but 'mode' is 'streaming'.")
        if table.primary_key:
            bucket_keys(table)
        for key in ("startingVersion", "readChangeFeed"):
            if key in options and not follows:
                raise ValidationError(f"'{key}' is for 'mode' = 'streaming'.")

    def fixed_columns(self, table: CatalogTable, options: Mapping[str, str]) -> tuple[str, ...] | None:
        refuse_versions(table, _TRAVEL)
        return super().fixed_columns(table, options)

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return METADATA

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return ALL_KINDS if OptionValues(OPTIONS, options)["readChangeFeed"] else INSERT_ONLY

    def source(self, request: SourceRequest) -> LakeSource:
        options = OptionValues(OPTIONS, request.options)
        place = _place(request.table, request.options, request.fence)
        follows = options["mode"].lower() == STREAMING
        if follows and not request.streaming:
            raise ValidationError(
                f"Querying an unbounded table '{request.table.path}' in batch mode is not allowed."
                " The table source is unbounded.",
                hint="Leave 'mode' = 'streaming' out, or set execution.runtime-mode to streaming.",
            )
        return LakeSource(
            history=DeltaHistory(
                place=place,
                columns=_fields(request.table),
                bounded=tuple(sorted({name for f in request.filters for name in columns_of(f)})),
                version=_version(request.table, place, options, request.time_zone),
                starting=options["startingVersion"],
                ignores_deletes=options["ignoreDeletes"],
                ignores_changes=options["ignoreChanges"],
                changes=options["readChangeFeed"],
            ),
            reader=LakeReader(
                table=place.name,
                storage=place.storage,
                fields=request.fields,
                sequence=request.sequence,
                places=tuple(request.metadata.items()),
                limit=request.limit,
                changes=options["readChangeFeed"],
            ),
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
        """ConnectorError where the table cannot be reached; ValidationError where it has other columns."""
        request.refuse_streaming_overwrite()
        options = OptionValues(OPTIONS, request.options)
        place = _place(request.table, request.options, request.fence)
        columns, feed = _fields(request.table), _feed(request.table)
        asked = options[PROPERTY]
        if not place.exists():
            make = put_first if asked else DeltaPlace.create
            make(place, columns, request.table.partitioned_by)
        keys, by = request.table.primary_key, request.table.partitioned_by
        known = VectorLog(place=place)
        target = DeltaTarget(place=place, fields=columns, partitions=by, feed=bool(feed), vectors=known)
        rewrites = request.table.rewriting is not None
        newest = target.newest()
        newest.check(removes=request.overwrite or rewrites or bool(keys))
        if asked is not None and asked != has_vectors(newest.table):
            raise ValidationError(
                f"Table '{place.name}' is declared with '{PROPERTY}' = '{str(asked).lower()}', but the Delta"
                " table has another value.",
                hint="Leave the option out to write the table as it is.",
            )
        name = f"{request.job_id}-{request.ordinal}"
        commits = Commits(target=target, table=place.name, sink=f"tidemill-{name}")
        writer = _writer(request, place, options)
        return lake_sink(request, commits, writer, f"_tidemill/{name}", options["sink.buckets"])

    def check_rewriting(self, table: CatalogTable, statement: str) -> None:
        place = _place(table, table.options)
        target = DeltaTarget(place=place, fields=_fields(table), partitions=table.partitioned_by, feed=True)
        target.newest().check(removes=True)

    def rewritten(
        self, table: CatalogTable, files: Mapping[str, int], statement: str, time_zone: str, fence: Fence
    ) -> CatalogTable:
        place = _place(table, table.options, fence)
        seen = place.seen()
        version = int(seen.version())
        listed = active_files(place, seen, table.partitioned_by, ())
        change_type = CHANGE_TYPE.name if has_feed(seen) else ""
        marks = has_vectors(seen) and not change_type
        return part_of(table, listed, files, place.storage, statement, version, change_type, marks=marks)

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        place = _place(table, options)
        target = DeltaTarget(place=place, fields=_fields(table), partitions=table.partitioned_by)
        empty(target, place.name)

    def size(self, table: CatalogTable, options: Mapping[str, str]) -> int | None:
        """Of the newest version; None where it cannot be read."""
        place = _place(table, options)
        try:
            return stored_bytes(place.opened()) * _UNPACKED
        except ConnectorError:
            return None

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        return {"table-path": options["table-path"]}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if "table-path" in options:
            yield "table-path", options["table-path"]


def _place(table: CatalogTable, options: Mapping[str, str], fence: Fence = OPEN) -> DeltaPlace:
    settings = tuple((key, options[key]) for key in SETTINGS if key in options)
    storage = Storage(options["table-path"], settings, fence=fence)
    # A relative path may mean another one later.
    fixed = replace(storage, location=storage.root) if storage.is_local else storage
    return DeltaPlace(name=str(table.path), storage=fixed)


def _fields(table: CatalogTable) -> tuple[Field, ...]:
    """Its columns, without those of ``_extra``."""
    return tuple(Field(c.name, c.type) for c in table.physical_columns if c.name not in _extra(table))


def _extra(table: CatalogTable) -> tuple[str, ...]:
    """The columns that say how or where a row has changed, after the table's own."""
    if table.rewriting is None:
        return ()
    return (*_feed(table), *table.rewriting.place_columns)


def _feed(table: CatalogTable) -> tuple[str, ...]:
    """The column that says how a row has changed, if the table has a change feed to be written."""
    name = "" if table.rewriting is None else table.rewriting.change_type
    return (name,) if name else ()


def _writer(request: SinkRequest, place: DeltaPlace, options: OptionValues) -> LakeWriter:
    columns, partitions = _fields(request.table), _partitions(request.table)
    if _feed(request.table):
        plain = _data_writer(request, place, options, columns)
        stored = (*(f for f in columns if f not in partitions), CHANGE_TYPE)
        feed = replace(
            plain,
            fields=(*columns, CHANGE_TYPE),
            schema=file_schema(stored),
            prefix="cdc",
            directory=_CHANGES,
        )
        return replace(plain, feed=feed)
    given = request.fields[: len(request.fields) - len(_extra(request.table))]
    fields = columns if len(columns) == len(given) else given
    return _data_writer(request, place, options, fields)


def _data_writer(
    request: SinkRequest, place: DeltaPlace, options: OptionValues, fields: tuple[Field, ...]
) -> LakeWriter:
    partitions = _partitions(request.table)
    return LakeWriter(
        table=place.name,
        storage=place.storage,
        fields=fields,
        partitions=partitions,
        schema=file_schema(tuple(f for f in fields if f not in partitions)),
        prefix=f"part-{request.job_id[:8]}",
        roll=options["sink.rolling-policy.file-size"].bytes,
        compression=options["compression"].lower(),
    )


def _partitions(table: CatalogTable) -> tuple[Field, ...]:
    return tuple(f for n in table.partitioned_by for f in _fields(table) if f.name == n)


def _version(table: CatalogTable, place: DeltaPlace, options: OptionValues, zone: str) -> int | None:
    """The version to read; None for the newest."""
    if table.rewriting is not None:
        return table.rewriting.version
    if options["versionAsOf"] is not None:
        version: int = options["versionAsOf"]
        return version
    millis = options[AS_OF_MILLIS]
    if options["timestampAsOf"] is not None:
        millis = _millis(options["timestampAsOf"], zone)
    return None if millis is None else place.as_of(millis)


def _millis(text: str, zone: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValidationError(
            f"Could not parse value '{text}' for key 'timestampAsOf': it is not a time.",
            hint="Write yyyy-MM-dd HH:mm:ss.",
        ) from None
    instant = found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))
    return int(instant.astimezone(UTC).timestamp() * 1000)


CONNECTOR = DeltaConnector()
