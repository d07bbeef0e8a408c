"""How watermarks are made and waited for; all but the first are options of a table."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

IDLE_TIMEOUT = Option(
    key="table.exec.source.idle-timeout",
    kind=Duration,
    default=Duration(0),
    doc="After this time without rows, by the clock, a query no longer waits for the watermark of a "
    "table; 0 always waits. The option `scan.watermark.idle-timeout` of a table has priority.",
)
SCAN_IDLE_TIMEOUT = Option(
    key="scan.watermark.idle-timeout",
    kind=Duration,
    default=Duration(0),
    doc="After so long without rows, by the clock, the table is not waited for.",
)
EMIT_STRATEGY = Option(
    key="scan.watermark.emit.strategy",
    kind=str,
    default="on-periodic",
    choices=("on-event", "on-periodic"),
    doc="Rows are judged by the watermark of all rows before them, whichever of the two is asked for.",
)
EMIT_GAP = Option(
    key="scan.watermark.emit.on-event.gap",
    kind=int,
    default=1,
    doc="Every so many rows a watermark.",
)
ALIGNMENT_GROUP = Option(
    key="scan.watermark.alignment.group",
    kind=str,
    default="",
    doc="Tables of one group wait for each other.",
)
ALIGNMENT_MAX_DRIFT = Option(
    key="scan.watermark.alignment.max-drift",
    kind=Duration,
    default=Duration(0),
    doc="How far a table's watermark may be ahead of its group's.",
)
ALIGNMENT_UPDATE_INTERVAL = Option(
    key="scan.watermark.alignment.update-interval",
    kind=Duration,
    default=Duration(1000),
    doc="Read, but of no effect: watermarks are compared before each epoch.",
)
OPTIONS = (IDLE_TIMEOUT,)
OF_TABLES = (
    SCAN_IDLE_TIMEOUT,
    EMIT_STRATEGY,
    EMIT_GAP,
    ALIGNMENT_GROUP,
    ALIGNMENT_MAX_DRIFT,
    ALIGNMENT_UPDATE_INTERVAL,
)
