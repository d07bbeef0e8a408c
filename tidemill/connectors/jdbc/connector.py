"""The ``jdbc`` connector: tables of PostgreSQL and SQLite by JDBC URL, over SQLAlchemy.

As a sink it upserts and deletes by the table's PRIMARY KEY, or appends if none is declared; the
table itself is the user's. As a source it is a bounded scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, UPSERT, RowKind
from tidemill.connectors.api import Connector, ConnectorOption, LookupRequest, SinkRequest, SourceRequest
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.grouping import Grouping
from tidemill.connectors.jdbc.changing import change_rows
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.grouping import GroupedSource, grouped
from tidemill.connectors.jdbc.lookup import KEY_TYPES, JdbcLookup
from tidemill.connectors.jdbc.sink import JdbcSink
from tidemill.connectors.jdbc.source import JdbcReader, JdbcSource, slices
from tidemill.connectors.jdbc.target import TargetTable
from tidemill.connectors.jdbc.urls import Database, files_named
from tidemill.connectors.lookup.options import LOOKUP_OPTIONS, OLD_LOOKUP_OPTIONS, RETRIES
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.private import own_directory
from tidemill.files.storage import Storage
from tidemill.types import logical as t
from tidemill.types.logical import Field

_SCAN = (
    "scan.partition.column",
    "scan.partition.num",
    "scan.partition.lower-bound",
    "scan.partition.upper-bound",
)
_OPTIONS = (
    ConnectorOption(
        key="url", required=True, doc="jdbc:postgresql://host:port/database or jdbc:sqlite:path."
    ),
    ConnectorOption(key="table-name", required=True, doc="Table, or schema.table."),
    ConnectorOption(key="username", doc="User; also as ?user= in the URL."),
    ConnectorOption(key="password", doc="Password; also as ?password= in the URL."),
    ConnectorOption(key="driver", doc="Accepted; the URL tells the driver."),
    ConnectorOption(key="compatible-mode", doc="Accepted, unused."),
    ConnectorOption(
        key="connection.max-retry-timeout",
        kind="duration",
        default="60 s",
        doc="How long an epoch is retried if the database cannot be reached.",
    ),
    ConnectorOption(key="scan.partition.column", doc="Integer column to cut the scan by."),
    ConnectorOption(key="scan.partition.num", kind="int", least=1, doc="Number of parts of the scan."),
    ConnectorOption(key="scan.partition.lower-bound", kind="int", doc="Smallest value of the column."),
    ConnectorOption(key="scan.partition.upper-bound", kind="int", doc="Largest value of the column."),
    ConnectorOption(
        key="scan.fetch-size", kind="int", default="0", least=0, doc="Rows per fetch; 0: its own."
    ),
    ConnectorOption(key="scan.auto-commit", kind="bool", default="true", doc="Accepted, unused."),
    ConnectorOption(key="sink.buffer-flush.max-rows", kind="int", default="100", doc="Accepted, unused."),
    ConnectorOption(
        key="sink.buffer-flush.interval", kind="duration", default="1 s", doc="Accepted; an epoch is a flush."
    ),
    ConnectorOption(key="sink.max-retries", kind="int", default="3", doc="Accepted, unused."),
    ConnectorOption(key="sink.parallelism", kind="int", least=1, doc="Accepted, unused."),
    ConnectorOption(
        key="sink.staging-path",
        doc="Directory for rows between their epoch and its commit; default: one of this user's own.",
    ),
    *LOOKUP_OPTIONS,
    *OLD_LOOKUP_OPTIONS,
)
_UNSTORED = (t.MapType, t.MultisetType, t.RowType, t.YearMonthIntervalType, t.DayTimeIntervalType)


class JdbcConnector(Connector):
    identifier = "jdbc"
    options = _OPTIONS
    is_source = True
    is_sink = True
    changes_rows = True

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        dialect = _database(OptionValues(_OPTIONS, options)).dialect
        set_options = [key for key in _SCAN if key in options]
        if set_options and len(set_options) < len(_SCAN):
            raise ValidationError(
                "Either all or none of the following options should be provided:\n" + "\n".join(_SCAN)
            )
        for column in table.physical_columns:
            array = dialect == "sqlite" and isinstance(column.type, t.ArrayType)
            if isinstance(column.type, _UNSTORED) or array:
                raise NotSupportedError(
                    f"Column '{column.name}': {dialect} tables cannot hold {column.type} through jdbc."
                )

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        return UPSERT if table.primary_key else INSERT_ONLY

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        """Paths that workers need: of a source, a database file; of a sink, the staging directory. (The
        driver commits the staged rows to the database.)"""
        values = OptionValues(_OPTIONS, options)
        if role == "sink":
            return {"sink.staging-path": _staging(values)}
        database = _database(values)
        return {"url": database.file} if database.dialect == "sqlite" else {}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Database files, and files in the URL's parameters: keys, certificates, passwords, sockets."""
        yield from (("url", place) for place in files_named(options.get("url", "")))
        if "sink.staging-path" in options:
            yield "sink.staging-path", options["sink.staging-path"]

    def source(self, request: SourceRequest) -> JdbcSource:
        options = OptionValues(_OPTIONS, request.options)
        column, count, low, high = (options[key] for key in _SCAN)
        return JdbcSource(
            reader=JdbcReader(
                database=_database(options),
                table=options["table-name"],
                fields=request.fields,
                slices=slices(column, low, high, count) if column is not None else (),
                fetch_size=options["scan.fetch-size"],
                sequence=request.sequence,
                limit=request.limit,
            ),
            filters=() if request.streaming else request.filters,
        )

    def grouped(self, request: SourceRequest, grouping: Grouping) -> GroupedSource | None:
        columns = tuple(Field(c.name, c.type) for c in request.table.physical_columns)
        return grouped(self.source(request).reader, grouping, columns, request.filters)

    def lookup_table(self, request: LookupRequest) -> JdbcLookup:
        options = OptionValues(_OPTIONS, request.options)
        for field in request.fields:
            if field.name in request.keys and not isinstance(field.type, KEY_TYPES):
                raise NotSupportedError(
                    f"A lookup join on column '{field.name}' of type {field.type} of a jdbc table"
                )
        return JdbcLookup(
            database=_database(options),
            table=options["table-name"],
            fields=request.fields,
            keys=request.keys,
            retries=options[RETRIES],
        )

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        """Deletes all rows in a transaction. (TRUNCATE needs other rights than DELETE.)"""
        values = OptionValues(_OPTIONS, options)
        database, name = _database(values), values["table-name"]
        target = TargetTable(name=name, fields=(), keys=())
        try:
            with database.engine.begin() as connection:
                connection.exec_driver_sql(f"DELETE FROM {target.quoted}")
        except DATABASE_ERRORS as e:
            raise failure(e, database, name) from None

    def change(
        self,
        table: CatalogTable,
        options: Mapping[str, str],
        filters: tuple[ColumnFilter, ...],
        values: Mapping[str, object] | None,
    ) -> None:
        given = OptionValues(_OPTIONS, options)
        declared = {c.name: c.type for c in table.physical_columns}
        change_rows(_database(given), given["table-name"], declared, filters, values)

    def sink(self, request: SinkRequest) -> JdbcSink:
        """The sink of the table. ConnectorError if the table does not exist or has other columns."""
        if request.overwrite:
            raise NotSupportedError("INSERT OVERWRITE into a jdbc table.")
        options = OptionValues(_OPTIONS, request.options)
        columns = tuple(Field(c.name, c.type) for c in request.table.physical_columns)
        sink = JdbcSink(
            database=_database(options),
            target=TargetTable(
                name=options["table-name"],
                fields=columns if len(columns) == len(request.fields) else request.fields,
                keys=request.table.primary_key,
            ),
            staging=Storage(_staging(options)),
            directory=f"{request.job_id}/{request.ordinal}",
            name=f"{request.job_id}/{request.ordinal}",
            ordered=request.ordered,
            patience=options["connection.max-retry-timeout"].seconds,
        )
        sink.check()
        return sink


def _staging(options: OptionValues) -> str:
    return options["sink.staging-path"] or own_directory("spool")


def _database(options: OptionValues) -> Database:
    return Database(options["url"], options["username"], options["password"])


CONNECTOR = JdbcConnector()
