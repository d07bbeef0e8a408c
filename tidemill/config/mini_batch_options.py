"""Options of the mini-batch (micro-bundle) execution of streaming operators."""

from __future__ import annotations

from tidemill.config.option import LONG, Duration, Option

MINI_BATCH_ENABLED = Option(
    key="table.exec.mini-batch.enabled",
    kind=bool,
    default=True,
    doc="Whether Tidemill combines the changes of a key over an epoch before operators emit. Flink's "
    "default is false.",
)
MINI_BATCH_ALLOW_LATENCY = Option(
    key="table.exec.mini-batch.allow-latency",
    kind=Duration,
    default=Duration(0),
    doc="The longest time that rows may wait for their epoch; with 0 an epoch takes the rows that are "
    "available.",
)
MINI_BATCH_SIZE = Option(
    key="table.exec.mini-batch.size",
    kind=int,
    default=-1,
    most=LONG,
    doc="The largest number of input rows of an epoch; if set, it must be positive.",
)
DEDUPLICATE_COMPACT = Option(
    key="table.exec.deduplicate.mini-batch.compact-changes-enabled",
    kind=bool,
    default=False,
    doc="Whether a deduplication by event time emits only the last change of a key in an epoch.",
)
OPTIONS = (MINI_BATCH_ENABLED, MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_SIZE, DEDUPLICATE_COMPACT)
