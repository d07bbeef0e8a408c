"""Names, time zone and statement behaviour of a session."""

from __future__ import annotations

from tidemill.config.option import Option

LOCAL_TIME_ZONE = Option(
    key="table.local-time-zone",
    kind=str,
    default="UTC",
    doc="The zone in which TIMESTAMP_LTZ values are shown and turned to and from TIMESTAMP: a name of the "
    "time zone database, `UTC`, or `GMT+03:00`. Flink's default is the zone of the machine.",
)
MAX_COLUMN_WIDTH = Option(
    key="table.display.max-column-width",
    kind=int,
    default=30,
    least=1,
    doc="Printed results cut values of types without a fixed length after so many characters.",
)
DML_SYNC = Option(
    key="table.dml-sync",
    kind=bool,
    default=False,
    doc="Whether `execute_sql` of an INSERT returns only when its job has ended; `tidemill run` waits.",
)
OPTIONS = (LOCAL_TIME_ZONE, MAX_COLUMN_WIDTH, DML_SYNC)
