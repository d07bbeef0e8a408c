"""The ``filesystem`` connector: files in any format as a table, and tables as files."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import ConnectorOption, Sink, SinkRequest, SourceRequest
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.options import OPTIONS
from tidemill.connectors.filesystem.reading import FileReader
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.filesystem.storage import Storage
from tidemill.connectors.formats.api import DecodeRequest, Format, Framing, format_options
from tidemill.connectors.formats.registry import find_format
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.registry import check_unknown
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

_FILE_METADATA: dict[str, t.LogicalType] = {
    "file.path": t.VarCharType(nullable=False),
    "file.name": t.VarCharType(nullable=False),
    "file.size": t.BigIntType(nullable=False),
    "file.modification-time": t.LocalZonedTimestampType(precision=3, nullable=False),
}


class FilesystemConnector:
    identifier = "filesystem"
    options: tuple[ConnectorOption, ...] = OPTIONS
    allows_unknown_options = True  # those of the format; validate() looks at the rest
    is_source = True
    is_sink = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        found = self._format(options)
        own = format_options(found, options)
        check_unknown(self.identifier, self.options, options, prefixes=(f"{found.identifier}.",))
        own.check()
        found.validate(table, own, role="source")

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, t.LogicalType]:
        return {**self._format(options).metadata(), **_FILE_METADATA}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return self._format(options).kinds()

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return self._format(options).kinds() & wanted | INSERT_ONLY

    def source(self, request: SourceRequest) -> FileSource:
        found = self._format(request.options)
        options = OptionValues(self.options, request.options)
        own = format_options(found, request.options)
        storage = Storage(options["path"])
        framing = found.framing(own)
        return FileSource(
            storage=storage,
            reader=_reader(found, framing, storage, request, options),
            cutter=_cutter(found, framing, own),
            row_groups=None,
            watched=request.streaming and options["source.monitor-interval"] is not None,
            pattern=options["source.path.regex-pattern"],
            parallelism=max(request.parallelism, 1),
        )

    def sink(self, request: SinkRequest) -> Sink:
        raise NotSupportedError("Writing files is not supported yet.")

    def _format(self, options: Mapping[str, str]) -> Format:
        if "format" not in options:
            raise ValidationError(
                "One or more required options are missing.\n\nMissing required options are:\n\nformat"
            )
        return find_format(options["format"])


def _cutter(found: Format, framing: Framing, own: OptionValues) -> Cutter:
    if framing is not Framing.QUOTED:
        return Cutter()
    return Cutter(
        quote=found.quote(own), delimiter=own["field-delimiter"], escape=own["escape-character"] or ""
    )


def _reader(
    found: Format, framing: Framing, storage: Storage, request: SourceRequest, options: OptionValues
) -> FileReader:
    table = request.table
    partitions = set(table.partitioned_by)
    from_file = {n: k for n, k in request.metadata.items() if k in _FILE_METADATA}
    from_format = {n: k for n, k in request.metadata.items() if k not in _FILE_METADATA}
    physical = tuple(Field(c.name, c.type) for c in table.physical_columns if c.name not in partitions)
    wanted = tuple(f for f in request.fields if f.name not in partitions and f.name not in request.metadata)
    decoder = found.decoder(
        DecodeRequest(
            columns=physical,
            wanted=wanted,
            metadata=tuple((f, from_format[f.name]) for f in request.fields if f.name in from_format),
            options=request.options,
            time_zone=request.time_zone,
        )
    )
    return FileReader(
        storage=storage,
        framing=framing,
        decoder=decoder,
        fields=request.fields,
        partitions=tuple(f for f in request.fields if f.name in partitions),
        default_partition=options["partition.default-name"],
        file_metadata=tuple((f, from_file[f.name]) for f in request.fields if f.name in from_file),
        changelog=found.kinds() != INSERT_ONLY,
        sequence=request.sequence,
    )


CONNECTOR = FilesystemConnector()
