"""Options of ``postgres-cdc``, under the names of Flink CDC, and the checks of their combinations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlencode

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.cdc.source import INITIAL, LATEST, SNAPSHOT
from tidemill.connectors.jdbc.urls import Database
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError

COMMITTED = "committed-offset"
ALL, UPSERT = "all", "upsert"
FILTERED, ALL_TABLES, DISABLED = "filtered", "all_tables", "disabled"
PUBLICATION, AUTOCREATE = "debezium.publication.name", "debezium.publication.autocreate.mode"
_IN_URLS = re.compile(r"[:/?@#\s]")
_PREFIX = "debezium."
_TLS = {
    f"{_PREFIX}database.{key}": key for key in ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
}
_TLS_FILES = tuple(key for key in _TLS if not key.endswith(("mode", "password")))
_ACCEPTED = {
    "scan.incremental.snapshot.enabled": ("bool", "A snapshot is always read in parts."),
    "scan.incremental.snapshot.chunk.size": ("int", "Parts are ranges of blocks."),
    "scan.incremental.snapshot.chunk.key-column": ("string", "Parts are ranges of blocks."),
    "scan.incremental.snapshot.unbounded-chunk-first.enabled": ("bool", "Parts are ranges of blocks."),
    "scan.incremental.snapshot.backfill.skip": ("bool", "A snapshot has no backfill."),
    "scan.incremental.close-idle-reader.enabled": ("bool", ""),
    "scan.snapshot.fetch.size": ("int", ""),
    "scan.lsn-commit.checkpoints-num-delay": ("int", "The slot moves once an epoch is committed."),
    "chunk-meta.group.size": ("int", ""),
    "chunk-key.even-distribution.factor.lower-bound": ("string", ""),
    "chunk-key.even-distribution.factor.upper-bound": ("string", ""),
    "connect.timeout": ("duration", ""),
    "connect.pool.size": ("int", ""),
    "connect.max-retries": ("int", ""),
    "table-id.include-database": ("bool", ""),
}
_REFUSED = ("scan.read-changelog-as-append-only.enabled", "scan.include-partitioned-tables.enabled")
OPTIONS = (
    ConnectorOption(key="hostname", required=True, doc="The server."),
    ConnectorOption(key="port", kind="int", default="5432", doc="Its port."),
    ConnectorOption(key="username", required=True, doc="User with the rights REPLICATION and SELECT."),
    ConnectorOption(key="password", required=True, doc="Password."),
    ConnectorOption(key="database-name", required=True, doc="Database."),
    ConnectorOption(key="schema-name", required=True, doc="Schema; no regular expression."),
    ConnectorOption(key="table-name", required=True, doc="Table; no regular expression."),
    ConnectorOption(
        key="slot.name", required=True, doc="Logical replication slot, one for each table; made if missing."
    ),
    ConnectorOption(key="decoding.plugin.name", default="pgoutput", doc="pgoutput; others are refused."),
    ConnectorOption(
        key="changelog-mode",
        default=ALL,
        choices=(ALL, UPSERT),
        doc="all: needs REPLICA IDENTITY FULL. upsert: changes by the declared PRIMARY KEY.",
    ),
    ConnectorOption(
        key="scan.startup.mode",
        default=INITIAL,
        choices=(INITIAL, LATEST, COMMITTED, SNAPSHOT),
        doc="initial: a snapshot, then changes. latest-offset: changes from now on. committed-offset: changes"
        " from the slot's position. snapshot: a snapshot alone.",
    ),
    ConnectorOption(
        key="heartbeat.interval.ms",
        kind="duration",
        default="30 s",
        doc="How often the slot skips changes of other tables, if there are 16 MiB of them.",
    ),
    ConnectorOption(key=PUBLICATION, default="dbz_publication", doc="Publication that has the table."),
    ConnectorOption(
        key=AUTOCREATE,
        default=FILTERED,
        choices=(FILTERED, ALL_TABLES, DISABLED),
        doc="filtered: makes the publication, or adds the table. all_tables: makes it for all tables.",
    ),
    *(ConnectorOption(key=key, doc=f"libpq's {name}.") for key, name in _TLS.items()),
    *(
        ConnectorOption(key=key, kind=kind, doc=f"Accepted, unused. {why}".strip())
        for key, (kind, why) in _ACCEPTED.items()
    ),
    *(ConnectorOption(key=key, kind="bool", default="false", doc="Only false.") for key in _REFUSED),
)


def check(options: OptionValues, given: Mapping[str, str], keys: tuple[str, ...]) -> None:
    """Raises if an option is refused or does not fit the others. ``given``: the options as the table has
    them; ``keys``: the declared primary key."""
    for key in ("hostname", "database-name"):
        if _IN_URLS.search(options[key]):
            raise ValidationError(f"'{key}' = '{options[key]}' is not the name of a server or database.")
    plugin = options["decoding.plugin.name"].lower()
    if plugin != "pgoutput":
        raise NotSupportedError(
            f"'decoding.plugin.name' = '{plugin}'",
            hint="'pgoutput' gives the same rows and is part of PostgreSQL. Use another 'slot.name' with it.",
        )
    for key in _REFUSED:
        if options[key]:
            raise NotSupportedError(f"'{key}' = 'true'")
    debezium_keys = {option.key for option in OPTIONS if option.key.startswith(_PREFIX)}
    for key in sorted(given):
        if key.startswith(_PREFIX) and key not in debezium_keys:
            raise NotSupportedError(f"'{key}': Debezium's properties", expected=tuple(sorted(debezium_keys)))
    if options["changelog-mode"].lower() == UPSERT and not keys:
        raise ValidationError(
            "Primary key must be present when upsert mode is selected.", hint="Declare the PRIMARY KEY."
        )


def database(options: OptionValues) -> Database:
    tls = {name: options[key] for key, name in _TLS.items() if options[key] is not None}
    url = f"jdbc:postgresql://{options['hostname']}:{options['port']}/{options['database-name']}"
    return Database(f"{url}?{urlencode(tls)}" if tls else url, options["username"], options["password"])


def files(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of an option and the path of the certificate or key that it names."""
    return [(key, given[key]) for key in _TLS_FILES if key in given]
