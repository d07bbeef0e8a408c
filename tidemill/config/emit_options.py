"""When windows show results other than once at their end, and what becomes of late rows."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

EARLY_FIRE_ENABLED = Option(
    key="table.exec.emit.early-fire.enabled",
    kind=bool,
    default=False,
    doc="Whether windows show what they have before their end. Their result is an updating stream then.",
)
EARLY_FIRE_DELAY = Option(
    key="table.exec.emit.early-fire.delay",
    kind=Duration,
    default=Duration(0),
    doc="The longest time, by the clock, that a change before a window's end waits to be shown; 0 shows it "
    "with its epoch. Must be set where early fire is enabled.",
)
LATE_FIRE_ENABLED = Option(
    key="table.exec.emit.late-fire.enabled",
    kind=bool,
    default=False,
    doc="Whether windows show what late rows change after their end, as long as "
    "`table.exec.emit.allow-lateness` says.",
)
LATE_FIRE_DELAY = Option(
    key="table.exec.emit.late-fire.delay",
    kind=Duration,
    default=Duration(0),
    doc="The longest time, by the clock, that a change after a window's end waits to be shown; 0 shows it "
    "with its epoch. Must be set where late fire is enabled.",
)
ALLOW_LATENESS = Option(
    key="table.exec.emit.allow-lateness",
    kind=Duration,
    default=Duration(0),
    doc="How far, in event time, the watermark may be beyond a window's end when a row still counts in it, "
    "where late rows are shown (late fire, or `tidemill.late-rows` = `correct`). What is kept of a window is "
    "kept so much longer.",
)
LATE_ROWS = Option(
    key="tidemill.late-rows",
    kind=str,
    default="drop",
    choices=("drop", "correct"),
    own=True,
    doc="What becomes of rows that come behind the watermark, where results stay once they are given: they "
    "are dropped, or correct them. Windows are corrected as long as `table.exec.emit.allow-lateness` says "
    "(with late fire also where this says `drop`), OVER by time for as long as state is kept.",
)
LATE_ROWS_TABLE = Option(
    key="tidemill.late-rows.table",
    kind=str,
    default="",
    own=True,
    doc="A table that rows which come too late to count are written to: the operator, the watermark that "
    "they came behind, the row as JSON.",
)
OPTIONS = (
    EARLY_FIRE_ENABLED,
    EARLY_FIRE_DELAY,
    LATE_FIRE_ENABLED,
    LATE_FIRE_DELAY,
    ALLOW_LATENESS,
    LATE_ROWS,
    LATE_ROWS_TABLE,
)
