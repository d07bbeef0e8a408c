"""How epochs are cut; these keys are Tidemill's own."""

from __future__ import annotations

from tidemill.config.option import MemorySize, Option

MAX_ROWS = Option(
    key="tidemill.epoch.max-rows",
    kind=int,
    default=0,
    least=0,
    own=True,
    doc="The most rows of each source in one epoch; 0 is no limit. If `table.exec.mini-batch.size` is "
    "set, too, the smaller value counts.",
)
MAX_BYTES = Option(
    key="tidemill.epoch.max-bytes",
    kind=MemorySize,
    default=MemorySize(256 << 20),
    own=True,
    doc="The approximate number of bytes of each source in one epoch, at most; 0 is no limit.",
)
RESIDENT = Option(
    key="tidemill.epoch.resident",
    kind=bool,
    default=True,
    own=True,
    doc="Whether epochs run in Python workers that stay, without a Spark job each. It has an effect if "
    "Spark runs within one machine, and on jobs whose rows stay in Arrow: `EXPLAIN EXECUTION_PLAN` says "
    "which. It changes no result.",
)
SMALL = Option(
    key="tidemill.epoch.small-bytes",
    kind=MemorySize,
    default=MemorySize(1 << 20),
    own=True,
    doc="One task does all of an epoch that reads at most so much, whatever `parallelism.default` says, "
    "because several tasks would take longer. It has an effect on jobs whose rows stay in Arrow. With 0, "
    "every epoch has all partitions. It changes no result.",
)
OPTIONS = (MAX_ROWS, MAX_BYTES, RESIDENT, SMALL)
