"""What a connector is: a factory that makes sources and sinks of a table's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api.lookup import LookupRequest, LookupTable, ScannedTable
from tidemill.connectors.api.sink import Sink, SinkRequest
from tidemill.connectors.api.source import Source, SourceRequest
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.grouping import Grouping
from tidemill.errors import NotSupportedError
from tidemill.files.fence import Fence
from tidemill.types.logical import LogicalType


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOption:
    """An option of a connector or format, for validation and the generated docs page.

    ``kind``: 'string', 'int', 'bool', 'duration', 'memory', 'float', 'map' (prefix key ending in '.').
    """

    key: str
    kind: str = "string"
    default: str | None = None
    required: bool = False
    doc: str = ""
    choices: tuple[str, ...] = ()
    least: int | None = None
    """The smallest number that means something."""


class Connector:
    """The factory; stateless. ``identifier`` is the value of 'connector'.

    What is said here is true of a connector without options, metadata, files and changes: it reads and
    takes inserted rows alone. One that ``is_source`` has ``source``, one that ``is_sink`` has ``sink``.
    """

    identifier: str
    options: tuple[ConnectorOption, ...] = ()
    allows_unknown_options: bool = False
    is_source: bool = False
    is_sink: bool = False
    changes_rows: bool = False
    """Whether DELETE and UPDATE change the rows of its tables (see ``fixed_columns``)."""
    rows_in_batch: bool = False
    """Whether a batch query reads the rows of a table as they are, whatever changes a stream gives."""
    time_option: str = ""
    """The option with the time, in milliseconds, of FROM t FOR SYSTEM_TIME AS OF; '' where tables keep no
    versions."""

    def validate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        """Checks option values (and the format's) beyond their kinds; raises ValidationError."""

    def fixed_columns(self, table: CatalogTable, options: Mapping[str, str]) -> tuple[str, ...] | None:
        """What UPDATE cannot set, as it tells the rows of ``table`` apart; None where nothing does so, so
        that rows cannot change. NotSupportedError for options by which rows cannot change."""
        return table.primary_key or None

    def metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        """Readable metadata keys and their types, the format's included."""
        return {}

    def writable_metadata(self, options: Mapping[str, str]) -> Mapping[str, LogicalType]:
        """Metadata keys that a sink stores, and their types."""
        return {}

    def source_kinds(self, table: CatalogTable, options: Mapping[str, str]) -> frozenset[RowKind]:
        """The RowKinds the source produces: INSERT_ONLY, UPSERT or ALL_KINDS."""
        return INSERT_ONLY

    def sink_kinds(
        self, table: CatalogTable, options: Mapping[str, str], wanted: frozenset[RowKind]
    ) -> frozenset[RowKind]:
        """What the sink consumes of the ``wanted`` kinds (print, blackhole: all of them; an upsert
        sink: no -U; an append-only sink: INSERT_ONLY)."""
        return INSERT_ONLY

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        """Paths and URIs of files that the driver and all workers must see alike, by the option that names
        them; ``role``: 'source' or 'sink'."""
        return {}

    def kept_places(self, options: Mapping[str, str]) -> tuple[str, ...]:
        """Paths and URIs of folders in which a sink may leave rows that a later job must find, which takes up
        a savepoint of its job (``SinkRequest.kept``)."""
        return ()

    def named_paths(self, options: Mapping[str, str]) -> Iterable[tuple[str, str]]:
        """All paths and URIs in ``options``, each with the option that names it, whatever for and however
        ill-formed the options are: a session may be kept from some."""
        return ()

    def has_splits(self) -> bool:
        """Whether its sources are ``SplitSource``s."""
        return False

    def gives_arrow(self) -> bool:
        """Whether its sources are ``ArrowSource``s."""
        return False

    def size(self, table: CatalogTable, options: Mapping[str, str]) -> int | None:
        """How many bytes all physical columns of all rows take once decoded, rather too many than too few.
        The table is not read for that; None where it is not known now."""
        return None

    def how_read(self, request: SourceRequest) -> str:
        """For EXPLAIN, in batch mode: what reads the table, and why; '' where that cannot be told now, or
        where there is one way."""
        return ""

    def grouped(self, request: SourceRequest, grouping: Grouping) -> Source | None:
        """An aggregation where the table lies: ``grouping`` of the rows for which all of the request's
        filters hold, its ``fields``, several rows for one key maybe. None where that would not be exact;
        looks at the table's types for that."""
        return None

    def source(self, request: SourceRequest) -> Source:
        raise NotSupportedError(f"Connector '{self.identifier}' cannot be used as a source.")

    def sink(self, request: SinkRequest) -> Sink:
        raise NotSupportedError(f"Connector '{self.identifier}' cannot be used as a sink.")


@runtime_checkable
class LookupConnector(Protocol):
    """Optional face of a connector whose tables can be asked by key: FOR SYSTEM_TIME AS OF a processing
    time. Those of its options that say how are ``connectors.lookup.options.LOOKUP_OPTIONS``."""

    def lookup_table(self, request: LookupRequest) -> LookupTable | ScannedTable: ...


@runtime_checkable
class ChangingConnector(Protocol):
    """Optional face of a connector whose outside system changes rows by a condition, for DELETE and UPDATE of
    tables without a primary key."""

    def change(
        self,
        table: CatalogTable,
        options: Mapping[str, str],
        filters: tuple[ColumnFilter, ...],
        values: Mapping[str, object] | None,
    ) -> None:
        """Sets columns to ``values``, or deletes the rows for None, where all ``filters`` hold, at once.
        NotSupportedError where the system would not judge the rows as we do or would hold other values,
        ConnectorError where it fails: nothing is changed then."""
        ...


@runtime_checkable
class TruncatingConnector(Protocol):
    """Optional face of a connector whose tables can be emptied."""

    def truncate(self, table: CatalogTable, options: Mapping[str, str]) -> None:
        """Removes all rows, at once as far as the outside system can. ConnectorError where it cannot."""
        ...


@runtime_checkable
class RewritingConnector(Protocol):
    """Optional face of a connector whose tables are files: DELETE and UPDATE write those files anew that have
    rows to change, and replace them at once."""

    row_file: str
    """The metadata key of the file that a row is in."""

    def check_rewriting(self, table: CatalogTable, statement: str) -> None:
        """NotSupportedError, which names ``statement``, for tables whose files cannot be written anew."""
        ...

    def rewritten(
        self, table: CatalogTable, files: Mapping[str, int], statement: str, time_zone: str, fence: Fence
    ) -> CatalogTable:
        """``table`` with a ``rewriting`` of ``files``, as ``row_file`` names them, each with its number of
        rows that change. NotSupportedError where writing a file anew would change rows that stay, or lose
        what the table does not declare."""
        ...


class OutsideTables(Protocol):
    """A catalog in an outside system. All of it raises ConnectorError where that cannot be reached."""

    def databases(self) -> list[str]: ...

    def tables(self, database: str) -> list[str]: ...

    def table(self, database: str, name: str) -> CatalogTable | None:
        """With the options by which its connector reads it; None where there is none."""
        ...

    def create_database(self, name: str) -> None: ...

    def drop_database(self, name: str) -> None: ...

    def create(self, table: CatalogTable) -> None:
        """NotSupportedError for what tables there do not know."""
        ...

    def drop(self, database: str, name: str) -> None: ...

    def rename(self, database: str, name: str, other: str) -> None: ...


@runtime_checkable
class CatalogConnector(Protocol):
    """Optional face of a connector that brings catalogs: CREATE CATALOG whose 'type' is its identifier. A
    package may add others ("Writing a connector" in docs/connectors.md)."""

    def catalog_options(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """As options of its tables, from those of CREATE CATALOG."""
        ...

    def catalog(self, name: str, options: Mapping[str, str]) -> OutsideTables: ...
