"""A Delta table as deltalake sees it: its versions, their files, and whether we understand it.

Only features whose meaning is known here are let through: a reader that ignores the mapping of columns, say,
gives wrong rows. Writers must know more than readers, and are asked for more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidemill.connectors.delta.vectors import FEATURE, PROPERTY
from tidemill.connectors.formats.columnar.parquet import FORMAT
from tidemill.connectors.lakehouse.stored_types import check_columns, stored_field
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.file_snapshot import seen_once
from tidemill.files.storage import Storage
from tidemill.files.systems import S3_SCHEMES, s3_settings
from tidemill.types.logical import Field

_READABLE = frozenset(
    ("timestampNtz", "vacuumProtocolCheck", "deletionVectors", "v2Checkpoint", "variantType")
)
_WRITABLE = _READABLE | {"appendOnly", "invariants", "changeDataFeed", "domainMetadata"}
_OF_WRITERS = (0, 0, 0, 3, 4, 5, 6)
"""Before version 7 a writer's version implies features: 3 has constraints, 4 change feed and generated
columns, 5 the mapping of columns, 6 identity columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPlace:
    """Where a table lies; ``name``: as its user calls it."""

    name: str
    storage: Storage

    def opened(self, version: int | None = None) -> DeltaTable:
        """ConnectorError where there is no table, or no such version any more."""
        try:
            return DeltaTable(self._uri, version=version, storage_options=self._options)
        except TableNotFoundError:
            raise self._missing() from None
        except (DeltaError, OSError) as e:
            if version is None:
                raise self.failure(e) from None
            raise ConnectorError(
                f"Version {version} of Delta table '{self.name}' cannot be read: {_said(e)}",
                hint="It may not be there yet, or its files of the log may have been removed.",
            ) from None

    def seen(self) -> DeltaTable:
        """The newest version, for all scans of a batch statement that of the first one."""
        return seen_once(self.opened, ("delta", self.storage))

    def exists(self) -> bool:
        try:
            DeltaTable(self._uri, storage_options=self._options)
        except TableNotFoundError:
            return False
        except (DeltaError, OSError) as e:
            raise self.failure(e) from None
        return True

    def create(self, fields: Sequence[Field], partitions: Sequence[str]) -> None:
        """A table without rows; one that is there by now stays."""
        schema = pa.schema([stored_field(field) for field in fields])
        try:
            DeltaTable.create(self._uri, schema, "ignore", list(partitions), storage_options=self._options)
        except (DeltaError, OSError) as e:
            raise self.failure(e) from None

    def as_of(self, millis: int) -> int:
        """The newest version that was there at that time."""
        table = self.opened()
        first = min(table.history(), key=lambda commit: int(commit["timestamp"]))
        if millis < int(first["timestamp"]):
            raise ConnectorError(
                f"Delta table '{self.name}' has no version of {_shown(millis)}: its oldest is of"
                f" {_shown(int(first['timestamp']))}."
            )
        table.load_as_version(datetime.fromtimestamp(millis / 1000, UTC))
        return int(table.version())

    def failure(self, error: Exception) -> ConnectorError:
        return ConnectorError(f"Delta table '{self.name}' at {self.storage.full_path('')}: {_said(error)}")

    def _missing(self) -> ConnectorError:
        return ConnectorError(
            f"There is no Delta table at {self.storage.full_path('')}, where table '{self.name}' is said to"
            " be.",
            hint="The first INSERT makes the table.",
        )

    @property
    def _uri(self) -> str:
        if self.storage.is_local:
            return self.storage.root
        scheme, _, rest = self.storage.location.partition("://")
        return f"s3://{rest}" if scheme in S3_SCHEMES else self.storage.location

    @property
    def _options(self) -> dict[str, str]:
        if self.storage.scheme not in S3_SCHEMES:
            return {}
        given = s3_settings(self.storage.location, dict(self.storage.settings))
        found = {
            "AWS_REGION": given.region,
            "AWS_ENDPOINT_URL": given.endpoint,
            "AWS_ACCESS_KEY_ID": given.access_key,
            "AWS_SECRET_ACCESS_KEY": given.secret_key,
            "AWS_SESSION_TOKEN": given.session_token,
            "AWS_ALLOW_HTTP": "true" if (given.endpoint or "").startswith("http://") else None,
        }
        return {key: value for key, value in found.items() if value}


def _said(error: Exception) -> str:
    """The library's message in one line. It has several, with colours of terminals."""
    return " ".join(re.sub(r"\x1b\[\d*m", "", str(error)).split())


def _shown(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")


def schema_of(table: DeltaTable) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def check_readable(place: DeltaPlace, table: DeltaTable, fields: Sequence[Field]) -> None:
    """NotSupportedError for features that we do not read, ValidationError for columns that do not fit."""
    _check_features(place, table.protocol().reader_features or (), _READABLE, "read")
    _check_mapping(place, table)
    check_columns(place.name, fields, schema_of(table), written=False)


def check_writable(
    place: DeltaPlace,
    table: DeltaTable,
    fields: Sequence[Field],
    partitions: Sequence[str],
    *,
    removes: bool,
    feed: bool,
) -> None:
    """As ``check_readable``, for a sink; ``removes``: it takes files out of the table, and with ``feed`` says
    which rows have changed."""
    check_readable(place, table, fields)
    protocol, configuration = table.protocol(), table.metadata().configuration
    features = protocol.writer_features
    if features is None and protocol.min_writer_version not in (1, 2):
        _check_old_writer(place, table, protocol.min_writer_version)
    _check_features(place, features or (), _WRITABLE, "write")
    _check_rules(place, table)
    if removes and configuration.get("delta.appendOnly", "false").lower() == "true":
        raise NotSupportedError(f"Updates of Delta table '{place.name}', which has delta.appendOnly")
    if removes and not feed and has_feed(table):
        raise NotSupportedError(f"Updates of Delta table '{place.name}', which has a change data feed")
    check_columns(place.name, fields, schema_of(table), written=True)
    found = table.metadata().partition_columns
    if list(found) != list(partitions):
        raise ValidationError(
            f"Delta table '{place.name}' is partitioned by ({', '.join(found)}), but declared with"
            f" PARTITIONED BY ({', '.join(partitions)})."
        )


def has_feed(table: DeltaTable) -> bool:
    """Whether its versions say row by row what they change."""
    on: str = table.metadata().configuration.get("delta.enableChangeDataFeed", "false")
    return on.lower() == "true"


def has_vectors(table: DeltaTable) -> bool:
    """Whether writers may mark rows of a file as deleted."""
    on: str = table.metadata().configuration.get(PROPERTY, "false")
    return on.lower() == "true" and FEATURE in map(str, table.protocol().writer_features or ())


def _check_features(place: DeltaPlace, features: Collection[Any], known: Collection[str], what: str) -> None:
    for feature in sorted(str(f) for f in features):
        if feature not in known:
            raise NotSupportedError(f"To {what} Delta table '{place.name}' with the feature '{feature}'")


def _check_mapping(place: DeltaPlace, table: DeltaTable) -> None:
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        raise NotSupportedError(f"Column mapping ('{mode}'), which Delta table '{place.name}' has")


def _check_old_writer(place: DeltaPlace, table: DeltaTable, version: int) -> None:
    """Constraints are rules of ``_check_rules``; the versions after 3 and 4 have other duties."""
    if version not in (3, 4):
        raise NotSupportedError(f"To write Delta table '{place.name}', which has writer version {version}")


def _check_rules(place: DeltaPlace, table: DeltaTable) -> None:
    """Rules that rows would have to be checked by."""
    constraints = [k for k in table.metadata().configuration if k.startswith("delta.constraints.")]
    ruled = [
        f"{field.name}: {key}"
        for field in table.schema().fields
        for key in field.metadata
        if key in ("delta.invariants", "delta.generationExpression") or key.startswith("delta.identity")
    ]
    if constraints or ruled:
        raise NotSupportedError(
            f"To write Delta table '{place.name}', which has rules for its rows: "
            + ", ".join((*constraints, *ruled))
        )


def relative_path(place: DeltaPlace, logged: str) -> str:
    """A path of the log, where it is a URI, as a name below the table's root."""
    path = unquote(logged)
    if "://" in path or path.startswith("/"):
        raise NotSupportedError(
            f"Delta table '{place.name}' has a file outside of its own directory ({path}), as shallow clones"
            " have."
        )
    return path


def stored_rows(place: DeltaPlace, path: str) -> int:
    """By the file's footer: a log need not say it."""
    try:
        with place.storage.open(path) as file:
            return sum(FORMAT.group_rows(file))
    except (OSError, pa.ArrowException) as e:
        raise place.failure(e) from None
