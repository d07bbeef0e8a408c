"""The ``filesystem`` connector: files in any format as a table, and tables as files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from tidemill.catalog.table import CatalogTable, Rewriting
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import Connector, LookupRequest, SinkRequest, SourceRequest
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.listing import list_files_or_none, seen_files
from tidemill.connectors.filesystem.lookup import FileTable
from tidemill.connectors.filesystem.native import NativeScan
from tidemill.connectors.filesystem.options import OPTIONS
from tidemill.connectors.filesystem.partition_commit import partition_markers
from tidemill.connectors.filesystem.partitions import PartitionPruning
from tidemill.connectors.filesystem.reading import FileReader
from tidemill.connectors.filesystem.record_search import RecordSearch
from tidemill.connectors.filesystem.replacing import Change, Changes, commit
from tidemill.connectors.filesystem.rewriting import Copies, check_format
from tidemill.connectors.filesystem.row_groups import RowGroups
from tidemill.connectors.filesystem.sink import FileSink
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.filesystem.watching import DirectoryWatch
from tidemill.connectors.filesystem.writing import unwritten
from tidemill.connectors.formats.api import (
    DecodeRequest,
    EncodeRequest,
    Format,
    Framing,
    format_options,
    full_keys,
)
from tidemill.connectors.formats.native import NativeFormat
from tidemill.connectors.formats.registry import find_format
from tidemill.connectors.lookup.options import RETRIES
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.registry import check_unknown
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.spark_internals.versions import FILE_RELATIONS, is_on, spark_version
from tidemill.types import logical as t
from tidemill.types.logical import Field

_FILE_METADATA: dict[str, t.LogicalType] = {
    "file.path": t.VarCharType(nullable=False),
    "file.name": t.VarCharType(nullable=False),
    "file.size": t.BigIntType(nullable=False),
    "file.modification-time": t.LocalZonedTimestampType(precision=3, nullable=False),
}


_UNPACKED = 6
"""Assumed ratio of decoded to stored bytes of compressed and columnar files."""


_KEYED = "A table of connector delta or iceberg takes such statements anywhere."


class FilesystemConnector(Connector):
    identifier = "filesystem"
    options = OPTIONS
    allows_unknown_options = True  # the format's options; validate() checks the others
    is_source = True
    is_sink = True
    row_file = "file.path"

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        file_format = self._format(options)
        format_values = format_options(file_format, options)
        check_unknown(self.identifier, (*self.options, *full_keys(file_format)), options)
        format_values.check()
        if file_format.framing(format_values) is Framing.MESSAGES:
            raise NotSupportedError(
                f"Files of format '{file_format.identifier}', which is a format of messages"
            )
        file_format.validate(table, format_values, role="source")

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, t.LogicalType]:
        return {**self._format(options).metadata(), **_FILE_METADATA}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return self._format(options).kinds()

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        """The format's kinds. An update message has the old row, too, so a file of them is no upsert sink."""
        return self._format(options).kinds()

    def gives_arrow(self) -> bool:
        return True

    def source(self, request: SourceRequest) -> FileSource:
        file_format = self._format(request.options)
        options = OptionValues(self.options, request.options)
        format_values = format_options(file_format, request.options)
        storage = _storage(request.options, request.fence)
        framing = file_format.framing(format_values)
        monitor_interval = options["source.monitor-interval"] if request.streaming else None
        cutter = _cutter(file_format, framing, format_values)
        reader = _reader(file_format, framing, cutter, storage, request, options)
        appends = monitor_interval is not None and framing is not Framing.ROW_GROUPS and storage.has_appends
        return FileSource(
            storage=storage,
            reader=replace(reader, appends=appends),
            cutter=cutter,
            row_groups=RowGroups(format=file_format) if framing is Framing.ROW_GROUPS else None,
            interval=None if monitor_interval is None else monitor_interval.seconds,
            watch=None if monitor_interval is None else DirectoryWatch(storage=storage),
            search=RecordSearch(storage=storage, cutter=cutter) if cutter.quote else None,
            pattern=options["source.path.regex-pattern"],
            parallelism=max(request.parallelism, 1),
            changes=Changes(storage=storage),
            pruning=_pruning(file_format, request, options),
            native=_native(file_format, storage, request, options),
            chosen=_chosen(request.table.rewriting),
        )

    def how_read(self, request: SourceRequest) -> str:
        source = self.source(request)
        reason = _why_own(self._format(request.options), _storage(request.options, request.fence), request)
        try:
            return f"by our decoders: {reason}" if source.native is None else source.how_read(source.native)
        except ConnectorError:
            return ""

    def lookup_table(self, request: LookupRequest) -> FileTable:
        if self.source_kinds(request.table, request.options) != INSERT_ONLY:
            raise NotSupportedError(
                f"Table '{request.table.path}' is a changelog ('format' = '{request.options['format']}'): its"
                " rows are changes, which cannot be looked up",
                hint="Join it by event time: FOR SYSTEM_TIME AS OF o.ts, WATERMARK FOR ts.",
            )
        source = self.source(
            SourceRequest(
                table=request.table,
                options=request.options,
                fields=request.fields,
                metadata={},
                sequence=False,
                parallelism=1,
                time_zone=request.time_zone,
                streaming=False,
                fence=request.fence,
            )
        )
        retries = OptionValues(self.options, request.options)[RETRIES]
        return FileTable(source=source, fields=request.fields, retries=retries)

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        return {"path": options["path"]}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        if "path" in options:
            yield "path", options["path"]

    def size(self, table: CatalogTable, options: Mapping[str, str]) -> int | None:
        """Estimated decoded bytes of the current files; None if the path cannot be listed."""
        file_format = self._format(options)
        is_columnar = file_format.framing(format_options(file_format, options)) is Framing.ROW_GROUPS
        try:
            files = seen_files(_storage(options))
        except ConnectorError:
            return None
        if is_columnar:
            return files.size * _UNPACKED
        return sum(f.size * (_UNPACKED if f.path.endswith(".gz") else 1) for f in files)

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        storage = _storage(options)
        try:
            files = list_files_or_none(storage)
            if not storage.is_local or storage.stat("") is not None:
                storage.each(lambda file: storage.remove(file.path), files)
            elif files:
                commit(storage, Change(statement="TRUNCATE TABLE", removed=tuple(files)))
        except (OSError, pa.ArrowException) as e:
            raise unwritten(storage, e) from None

    def check_rewriting(self, table: CatalogTable, statement: str) -> None:
        storage = _storage(table.options)
        if not storage.is_local:
            raise NotSupportedError(
                f"{statement} of files that are not on a local or mounted disk ({storage.scheme})",
                hint=_KEYED,
            )
        check_format(self._format(table.options), statement)
        if OptionValues(self.options, table.options)["source.path.regex-pattern"] is not None:
            raise NotSupportedError(f"{statement} of a table with 'source.path.regex-pattern'")
        if storage.stat("") is not None:
            raise NotSupportedError(f"{statement} of a table whose 'path' is a file", hint=_KEYED)

    def rewritten(
        self, table: CatalogTable, files: Collection[str], statement: str, time_zone: str, fence: Fence
    ) -> CatalogTable:
        storage = _storage(table.options, fence)
        listed = seen_files(storage)
        affected = tuple(f for f in listed if storage.full_path(f.path) in files)
        stored = tuple(f for f in _fields(table) if f.name not in table.partitioned_by)
        request = SourceRequest(
            table=table,
            options=table.options,
            fields=stored,
            metadata={},
            sequence=False,
            parallelism=1,
            time_zone=time_zone,
            streaming=False,
            fence=fence,
        )
        encode = EncodeRequest(fields=stored, changelog=False, options=table.options, time_zone=time_zone)
        rewriter = Copies(
            source=self.source(request),
            encoder=self._format(table.options).encoder(encode),
            format=self._format(table.options).identifier,
            statement=statement,
        )
        for file in affected:
            rewriter.check(file.path)
        return replace(table, rewriting=Rewriting(files=affected, statement=statement))

    def sink(self, request: SinkRequest) -> FileSink:
        request.refuse_streaming_overwrite()
        file_format = self._format(request.options)
        file_format.validate(request.table, format_options(file_format, request.options), role="sink")
        options = OptionValues(self.options, request.options)
        if _storage(request.options, request.fence).stat("") is not None:
            raise ConnectorError(
                f"The path '{options['path']}' of table '{request.table.path}' is a file.",
                hint="A sink writes files of its own into the directory that 'path' names.",
            )
        return _sink(file_format, request, options)

    def _format(self, options: Mapping[str, str]) -> Format:
        if "format" not in options:
            raise ValidationError(
                "One or more required options are missing.\n\nMissing required options are:\n\nformat"
            )
        return find_format(options["format"])


def _storage(options: Mapping[str, str], fence: Fence = OPEN) -> Storage:
    settings = tuple((key, options[key]) for key in SETTINGS if key in options)
    return Storage(options["path"], settings, fence=fence)


def _partitions(table: CatalogTable) -> tuple[Field, ...]:
    return tuple(f for f in _fields(table) if f.name in table.partitioned_by)


def _pruning(file_format: Format, request: SourceRequest, options: OptionValues) -> PartitionPruning | None:
    """None for a changelog: its files hold changes, and an update may move a row out of the filtered
    range."""
    if file_format.kinds() != INSERT_ONLY:
        return None
    default = options["partition.default-name"]
    return PartitionPruning.of(_partitions(request.table), request.filters, default)


def _native(
    file_format: Format, storage: Storage, request: SourceRequest, options: OptionValues
) -> NativeScan | None:
    if (
        not isinstance(file_format, NativeFormat)
        or request.streaming
        or _why_own(file_format, storage, request)
    ):
        return None
    names, partitions = {f.name for f in request.fields}, _partitions(request.table)
    stored = (Field(c.name, c.type) for c in request.table.physical_columns)
    return NativeScan(
        format=file_format,
        # The scan is a cache key: an absolute path stays valid if the working directory changes.
        storage=replace(storage, location=storage.root),
        fields=request.fields,
        partitions=tuple(f for f in partitions if f.name in names),
        columns=tuple(f for f in stored if f not in partitions),
        default_partition=options["partition.default-name"],
        table=str(request.table.path) if request.table.partitioned_by else "",
    )


def _why_own(file_format: Format, storage: Storage, request: SourceRequest) -> str:
    """The reason why Spark cannot read this bounded table, whatever its files; '' if it may. Spark keeps no
    order of rows, and can read only file systems whose classes it has."""
    reasons = {
        f"the format is {request.options['format']}": not isinstance(file_format, NativeFormat),
        f"Spark is {spark_version()}": not is_on(FILE_RELATIONS),
        "the order of rows matters": request.sequence,
        "metadata columns": bool(request.metadata),
        "not on a local disk": not storage.is_local,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _sink(file_format: Format, request: SinkRequest, options: OptionValues) -> FileSink:
    table = request.table
    fields = _sink_fields(request)
    partitions = tuple(f for n in table.partitioned_by for f in fields if f.name == n)
    changelog = file_format.kinds() != INSERT_ONLY and request.kinds != INSERT_ONLY
    stored = tuple(f for f in fields if f not in partitions)
    if not stored:
        raise ValidationError("At least one column of a partitioned table must not be a partition column.")
    encoder = file_format.encoder(
        EncodeRequest(
            fields=stored, changelog=changelog, options=request.options, time_zone=request.time_zone
        )
    )
    storage = _storage(request.options, request.fence)
    job = f"{request.job_id}-{request.ordinal}" if request.ordinal else request.job_id
    return FileSink(
        table=str(table.path),
        storage=storage,
        encoder=encoder,
        fields=fields,
        partitions=partitions,
        default_partition=options["partition.default-name"],
        extension=file_format.extension,
        roll=options["sink.rolling-policy.file-size"].bytes,
        parallelism=options["sink.parallelism"],
        by_partition=options["sink.shuffle-by-partition.enable"],
        job=job,
        overwrite=request.overwrite,
        rewriting=table.rewriting,
        streaming=request.streaming,
        markers=partition_markers(
            storage,
            options,
            tuple(f.name for f in partitions),
            tuple(f"part-{writer}-" for writer in (job, *request.former)),
        ),
        changes=Changes(storage=storage),
    )


def _chosen(rewriting: Rewriting | None) -> frozenset[str] | None:
    return None if rewriting is None else frozenset(file.path for file in rewriting.files)


def _fields(table: CatalogTable) -> tuple[Field, ...]:
    return tuple(Field(c.name, c.type) for c in table.physical_columns)


def _sink_fields(request: SinkRequest) -> tuple[Field, ...]:
    """The table's columns that the frame's columns are written to, by position."""
    physical = tuple(Field(c.name, c.type) for c in request.table.physical_columns)
    return physical if len(physical) == len(request.fields) else request.fields


def _cutter(file_format: Format, framing: Framing, format_values: OptionValues) -> Cutter:
    if framing is not Framing.QUOTED:
        return Cutter()
    return Cutter(
        quote=file_format.quote(format_values),
        delimiter=format_values["field-delimiter"],
        escape=format_values["escape-character"] or "",
    )


def _reader(
    file_format: Format,
    framing: Framing,
    cutter: Cutter,
    storage: Storage,
    request: SourceRequest,
    options: OptionValues,
) -> FileReader:
    table = request.table
    partitions = set(table.partitioned_by)
    file_metadata = {n: k for n, k in request.metadata.items() if k in _FILE_METADATA}
    format_metadata = {n: k for n, k in request.metadata.items() if k not in _FILE_METADATA}
    file_columns = tuple(Field(c.name, c.type) for c in table.physical_columns if c.name not in partitions)
    projected = tuple(
        f for f in request.fields if f.name not in partitions and f.name not in request.metadata
    )
    decoder = file_format.decoder(
        DecodeRequest(
            columns=file_columns,
            wanted=projected,
            metadata=tuple((f, format_metadata[f.name]) for f in request.fields if f.name in format_metadata),
            options=request.options,
            time_zone=request.time_zone,
        )
    )
    return FileReader(
        storage=storage,
        framing=framing,
        cutter=cutter,
        decoder=decoder,
        fields=request.fields,
        partitions=tuple(f for f in request.fields if f.name in partitions),
        default_partition=options["partition.default-name"],
        file_metadata=tuple((f, file_metadata[f.name]) for f in request.fields if f.name in file_metadata),
        changelog=file_format.kinds() != INSERT_ONLY,
        sequence=request.sequence,
        stops=not request.streaming,
        limit=request.limit,
    )


CONNECTOR = FilesystemConnector()
