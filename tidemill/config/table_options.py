"""Names, time zone and statement behaviour of a session."""

from __future__ import annotations

from tidemill.config.option import Option

LOCAL_TIME_ZONE = Option(
    key="table.local-time-zone",
    kind=str,
    default="UTC",
    doc="The time zone for showing TIMESTAMP_LTZ values and for conversions to and from TIMESTAMP: a "
    "name of the time zone database, `UTC`, or `GMT+03:00`. Flink's default is the zone of the "
    "machine.",
)
MAX_COLUMN_WIDTH = Option(
    key="table.display.max-column-width",
    kind=int,
    default=30,
    least=1,
    doc="Printed results cut a value to this number of characters, if its type has no fixed length.",
)
DML_SYNC = Option(
    key="table.dml-sync",
    kind=bool,
    default=False,
    doc="Whether `execute_sql` of an INSERT returns only when its job has ended; `tidemill run` waits.",
)
FORCE_RECOMPILE = Option(
    key="table.plan.force-recompile",
    kind=bool,
    default=False,
    doc="Whether COMPILE PLAN overwrites an existing file.",
)
CATALOG_STORE = Option(
    key="table.catalog-store.kind",
    kind=str,
    default="generic_in_memory",
    choices=("generic_in_memory", "file"),
    doc="The list of catalogs that CREATE CATALOG has made: `generic_in_memory` keeps it for the "
    "session, `file` keeps it for later sessions. Read when a session starts.",
)
CATALOG_STORE_PATH = Option(
    key="table.catalog-store.file.path",
    kind=str,
    default="",
    doc="The folder of the kind `file`, on this machine.",
)
OPTIONS = (LOCAL_TIME_ZONE, MAX_COLUMN_WIDTH, DML_SYNC, FORCE_RECOMPILE, CATALOG_STORE, CATALOG_STORE_PATH)
