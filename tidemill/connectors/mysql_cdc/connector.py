"""The connector ``mysql-cdc``: a table of MySQL or MariaDB and its changes, from the binlog."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, RowKind
from tidemill.connectors.api import Connector, SourceRequest
from tidemill.connectors.cdc.source import startup_mode
from tidemill.connectors.mysql_cdc import options as o
from tidemill.connectors.mysql_cdc.reading import METADATA, CdcReader
from tidemill.connectors.mysql_cdc.server import Capture, Server
from tidemill.connectors.mysql_cdc.source import CdcSource
from tidemill.connectors.mysql_cdc.values import can_declare
from tidemill.connectors.option_values import OptionValues
from tidemill.connectors.registry import check_unknown
from tidemill.errors import NotSupportedError
from tidemill.types.logical import Field, LogicalType


class MySqlCdcConnector(Connector):
    identifier = "mysql-cdc"
    options = o.OPTIONS
    allows_unknown_options = True  # some are refused by name
    is_source = True
    rows_in_batch = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        o.check(OptionValues(o.OPTIONS, options), options, table.primary_key)
        check_unknown(self.identifier, self.options, options)
        for column in table.physical_columns:
            if not can_declare(column.type):
                raise NotSupportedError(f"Column '{column.name}' of type {column.type}: mysql-cdc")

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        return METADATA

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        return ALL_KINDS

    def source(self, request: SourceRequest) -> CdcSource:
        options = OptionValues(o.OPTIONS, request.options)
        startup = startup_mode(options, streaming=request.streaming)
        capture = Capture(
            hostname=options["hostname"],
            port=options["port"],
            username=options["username"],
            password=options["password"],
            database=options["database-name"],
            table=options["table-name"],
            timeout=options["connect.timeout"].seconds,
        )
        return CdcSource(
            server=Server(capture=capture),
            reader=CdcReader(
                capture=capture,
                fields=request.fields,
                metadata=request.metadata,
                changes=request.streaming,
                sequence=request.sequence,
                zone=options[o.ZONE] or request.time_zone,
                limit=request.limit,
            ),
            columns=tuple(Field(c.name, c.type) for c in request.table.physical_columns),
            keys=request.table.primary_key,
            startup=startup,
            specific=(options[o.FILE], options[o.POS]) if startup == o.SPECIFIC else None,
            heartbeat=options["heartbeat.interval"].seconds,
            streaming=request.streaming,
        )

    def gives_arrow(self) -> bool:
        return True


CONNECTOR = MySqlCdcConnector()
