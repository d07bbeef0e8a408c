"""Options of ``mysql-cdc``, under the names of Flink CDC, and the checks of their combinations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.cdc.source import INITIAL, LATEST, SNAPSHOT
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError

EARLIEST, SPECIFIC = "earliest-offset", "specific-offset"
FILE, POS = "scan.startup.specific-offset.file", "scan.startup.specific-offset.pos"
ZONE = "server-time-zone"
_IDS = re.compile(r"\d+(-\d+)?")
_ACCEPTED = {
    "scan.incremental.snapshot.enabled": ("bool", "A snapshot is one transaction."),
    "scan.incremental.snapshot.chunk.size": ("int", "A snapshot is one transaction."),
    "scan.incremental.snapshot.chunk.key-column": ("string", "A snapshot is one transaction."),
    "scan.incremental.snapshot.backfill.skip": ("bool", "A snapshot has no backfill."),
    "scan.incremental.close-idle-reader.enabled": ("bool", ""),
    "scan.snapshot.fetch.size": ("int", ""),
    "connect.pool.size": ("int", ""),
    "connect.max-retries": ("int", ""),
}
_REFUSED = ("scan.newly-added-table.enabled", "scan.read-changelog-as-append-only.enabled")
_REFUSED_PREFIXES = ("debezium.", "jdbc.properties.")
_REFUSED_NAMES = (
    "scan.startup.specific-offset.gtid-set",
    "scan.startup.specific-offset.skip-events",
    "scan.startup.specific-offset.skip-rows",
    "scan.startup.timestamp-millis",
)
OPTIONS = (
    ConnectorOption(key="hostname", required=True, doc="The server."),
    ConnectorOption(key="port", kind="int", default="3306", doc="Its port."),
    ConnectorOption(
        key="username",
        required=True,
        doc="User with SELECT, LOCK TABLES, REPLICATION SLAVE and REPLICATION CLIENT or BINLOG MONITOR.",
    ),
    ConnectorOption(key="password", required=True, doc="Password."),
    ConnectorOption(key="database-name", required=True, doc="Database; no regular expression."),
    ConnectorOption(key="table-name", required=True, doc="Table; no regular expression."),
    ConnectorOption(key="server-id", doc="A number or a range. Unused: each read takes an id of its own."),
    ConnectorOption(
        key="scan.startup.mode",
        default=INITIAL,
        choices=(INITIAL, EARLIEST, LATEST, SPECIFIC, SNAPSHOT),
        doc="initial: a snapshot, then changes. earliest-offset: changes from the oldest binlog on."
        " latest-offset: changes from now on. specific-offset: changes from a position on. snapshot: a"
        " snapshot alone.",
    ),
    ConnectorOption(key=FILE, doc="specific-offset: the binlog file."),
    ConnectorOption(key=POS, kind="int", doc="specific-offset: the position between two transactions."),
    ConnectorOption(
        key=ZONE,
        doc="Zone of the wall-clock times where DATETIME meets TIMESTAMP_LTZ, or TIMESTAMP meets"
        " TIMESTAMP. The session's if unset.",
    ),
    ConnectorOption(key="connect.timeout", kind="duration", default="30 s", doc="For a connection."),
    ConnectorOption(
        key="heartbeat.interval",
        kind="duration",
        default="30 s",
        doc="How often the position skips changes of other tables, if there are 16 MiB of them.",
    ),
    *(
        ConnectorOption(key=key, kind=kind, doc=f"Accepted, unused. {why}".strip())
        for key, (kind, why) in _ACCEPTED.items()
    ),
    *(ConnectorOption(key=key, kind="bool", default="false", doc="Only false.") for key in _REFUSED),
)


def check(options: OptionValues, given: Mapping[str, str], keys: tuple[str, ...]) -> None:
    """Raises if an option is refused or does not fit the others. ``given``: the options as the table has
    them; ``keys``: the declared primary key."""
    for key in sorted(given):
        if key in _REFUSED_NAMES or key.startswith(_REFUSED_PREFIXES):
            raise NotSupportedError(f"'{key}' of mysql-cdc")
    for key in _REFUSED:
        if options[key]:
            raise NotSupportedError(f"'{key}' = 'true'")
    if not keys:
        raise ValidationError("mysql-cdc needs a primary key.", hint="Declare the PRIMARY KEY of the table.")
    if options["server-id"] is not None and not _IDS.fullmatch(options["server-id"]):
        raise ValidationError(
            f"'server-id' = '{options['server-id']}' is no number and no range like 5400-5408."
        )
    specific = options["scan.startup.mode"].lower() == SPECIFIC
    if specific != (options[FILE] is not None) or specific != (options[POS] is not None):
        raise ValidationError(f"'{FILE}' and '{POS}' belong to 'scan.startup.mode' = '{SPECIFIC}'.")
    if options[ZONE] is not None:
        try:
            ZoneInfo(options[ZONE])
        except (ZoneInfoNotFoundError, ValueError):
            raise ValidationError(f"'{ZONE}' = '{options[ZONE]}' is no time zone.") from None
