"""Early and late results of windows, and the treatment of late rows."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

EARLY_FIRE_ENABLED = Option(
    key="table.exec.emit.early-fire.enabled",
    kind=bool,
    default=False,
    doc="Whether windows emit results before their end. Their result is then an updating stream.",
)
EARLY_FIRE_DELAY = Option(
    key="table.exec.emit.early-fire.delay",
    kind=Duration,
    default=Duration(0),
    doc="The longest time, by the clock, that a change before a window's end waits; 0 emits it with its "
    "epoch. Must be set if early fire is enabled.",
)
LATE_FIRE_ENABLED = Option(
    key="table.exec.emit.late-fire.enabled",
    kind=bool,
    default=False,
    doc="Whether windows emit the changes of late rows after their end, for as long as "
    "`table.exec.emit.allow-lateness`.",
)
LATE_FIRE_DELAY = Option(
    key="table.exec.emit.late-fire.delay",
    kind=Duration,
    default=Duration(0),
    doc="The longest time, by the clock, that a change after a window's end waits; 0 emits it with its "
    "epoch. Must be set if late fire is enabled.",
)
ALLOW_LATENESS = Option(
    key="table.exec.emit.allow-lateness",
    kind=Duration,
    default=Duration(0),
    doc="How far, in event time, the watermark may be beyond a window's end while late rows still count. It "
    "has an effect only with late fire or `tidemill.late-rows` = `correct`. The state of a window is kept "
    "longer by this time.",
)
LATE_ROWS = Option(
    key="tidemill.late-rows",
    kind=str,
    default="drop",
    choices=("drop", "correct"),
    own=True,
    doc="Whether late rows are dropped or correct earlier results. A window can be corrected for "
    "`table.exec.emit.allow-lateness` (with late fire also if this option is `drop`), OVER by "
    "time as long as its state is kept.",
)
LATE_ROWS_TABLE = Option(
    key="tidemill.late-rows.table",
    kind=str,
    default="",
    own=True,
    doc="A table that collects the late rows: the operator, the watermark at that moment, and the row "
    "as JSON.",
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
