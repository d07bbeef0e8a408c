"""How a statement runs: stream or batch, parallelism, checkpoints."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

RUNTIME_MODE = Option(
    key="execution.runtime-mode",
    kind=str,
    default="STREAMING",
    choices=("STREAMING", "BATCH", "AUTOMATIC"),
    doc="STREAMING gives changelogs, BATCH final results. AUTOMATIC is refused when a query runs.",
)
PARALLELISM = Option(
    key="parallelism.default",
    kind=int,
    default=0,
    doc="Number of partitions of a job's exchanges and state; 0 takes the number of cores Spark has. "
    "A job that goes on with another number spreads its state anew.",
)
CHECKPOINT_DIRECTORY = Option(
    key="execution.checkpointing.dir",
    kind=str,
    default="",
    doc="Where a job keeps its epochs' records and its state. A job that finds its own records there goes "
    "on after the last committed epoch. Later jobs of one session use `job-2`, `job-3`... in it. Unset: a "
    "temporary directory that goes with the job.",
)
SAVEPOINT_DIRECTORY = Option(
    key="execution.checkpointing.savepoint-dir",
    kind=str,
    default="",
    doc="Where STOP JOB ... WITH SAVEPOINT writes savepoints, each in a folder of its own.",
)
RECOVERY_PATH = Option(
    key="execution.state-recovery.path",
    kind=str,
    default="",
    doc="A savepoint that a job starts from, if its checkpoint directory has no job yet: the same query, by "
    "the same job id.",
)
CHECKPOINT_INTERVAL = Option(
    key="execution.checkpointing.interval",
    kind=Duration,
    default=Duration(0),
    doc="Accepted for Flink's scripts; every epoch is a checkpoint here, so it changes nothing.",
)
OPTIONS = (
    RUNTIME_MODE,
    PARALLELISM,
    CHECKPOINT_DIRECTORY,
    SAVEPOINT_DIRECTORY,
    RECOVERY_PATH,
    CHECKPOINT_INTERVAL,
)
