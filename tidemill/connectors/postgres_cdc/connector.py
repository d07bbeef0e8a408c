"""The connector ``postgres-cdc``: a table of PostgreSQL and its changes, by logical decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, UPSERT, RowKind
from tidemill.connectors.api import Connector, SourceRequest
from tidemill.connectors.cdc.source import startup_mode
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.postgres_cdc import options as o
from tidemill.connectors.postgres_cdc.reading import METADATA, CdcReader
from tidemill.connectors.postgres_cdc.server import Capture, Server
from tidemill.connectors.postgres_cdc.source import CdcSource
from tidemill.connectors.postgres_cdc.texts import can_declare
from tidemill.connectors.registry import check_unknown
from tidemill.errors import NotSupportedError
from tidemill.types.logical import Field, LogicalType


class PostgresCdcConnector(Connector):
    identifier = "postgres-cdc"
    options = o.OPTIONS
    allows_unknown_options = True  # those of Debezium are refused by name
    is_source = True
    rows_in_batch = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        given = OptionValues(o.OPTIONS, options)
        o.check(given, options, table.primary_key)
        check_unknown(self.identifier, self.options, options)
        for column in table.physical_columns:
            if not can_declare(column.type):
                raise NotSupportedError(
                    f"Column '{column.name}' of type {column.type}: postgres-cdc",
                    hint="Any type of PostgreSQL can be declared as STRING.",
                )

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return METADATA

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return UPSERT if _by_key(OptionValues(o.OPTIONS, options)) else ALL_KINDS

    def source(self, request: SourceRequest) -> CdcSource:
        options = OptionValues(o.OPTIONS, request.options)
        startup = startup_mode(options, streaming=request.streaming)
        capture = Capture(
            database=o.database(options),
            schema=options["schema-name"],
            table=options["table-name"],
            slot=options["slot.name"],
            publication=options[o.PUBLICATION],
        )
        return CdcSource(
            server=Server(capture=capture),
            reader=CdcReader(
                capture=capture,
                database=options["database-name"],
                fields=request.fields,
                metadata=request.metadata,
                keys=request.table.primary_key if _by_key(options) else (),
                changes=request.streaming,
                sequence=request.sequence,
                limit=request.limit,
            ),
            columns=tuple(Field(c.name, c.type) for c in request.table.physical_columns),
            startup=startup,
            autocreate=options[o.AUTOCREATE].lower(),
            heartbeat=options["heartbeat.interval.ms"].seconds,
            parallelism=max(request.parallelism, 1),
            streaming=request.streaming,
        )

    def gives_arrow(self) -> bool:
        return True

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Certificates and keys that the driver and the workers read."""
        yield from o.files(options)


def _by_key(options: OptionValues) -> bool:
    return bool(options["changelog-mode"].lower() == o.UPSERT)


CONNECTOR = PostgresCdcConnector()
