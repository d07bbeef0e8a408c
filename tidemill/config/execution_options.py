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
    "If a job continues with another number, its state is spread over the new partitions.",
)
CHECKPOINT_DIRECTORY = Option(
    key="execution.checkpointing.dir",
    kind=str,
    default="",
    doc="The directory of a job's epoch records and state. A job that finds its own records there "
    "continues after the last committed epoch; a SELECT that continues shows only what is new. Later "
    "jobs of one session use `job-2`, `job-3`... in it. Unset: a temporary directory, removed with the job.",
)
SAVEPOINT_DIRECTORY = Option(
    key="execution.checkpointing.savepoint-dir",
    kind=str,
    default="",
    formerly=("state.savepoints.dir",),
    doc="The directory in which CREATE SAVEPOINT and STOP JOB ... WITH SAVEPOINT write savepoints, "
    "each in its own folder. Formerly `state.savepoints.dir`.",
)
RECOVERY_PATH = Option(
    key="execution.state-recovery.path",
    kind=str,
    default="",
    formerly=("execution.savepoint.path",),
    doc="The path of a savepoint, or the checkpoint directory of a job that has ended. A job starts "
    "from it if its own checkpoint directory has no job yet. Formerly `execution.savepoint.path`.",
)
CLAIM_MODE = Option(
    key="execution.state-recovery.claim-mode",
    kind=str,
    default="NO_CLAIM",
    formerly=("execution.savepoint-restore-mode",),
    choices=("NO_CLAIM", "CLAIM"),
    doc="NO_CLAIM leaves the savepoint unchanged, for any number of jobs. CLAIM gives the savepoint "
    "to the job, which removes it after the start. Formerly `execution.savepoint-restore-mode`.",
)
IGNORE_UNCLAIMED = Option(
    key="execution.state-recovery.ignore-unclaimed-state",
    kind=bool,
    default=False,
    formerly=("execution.savepoint.ignore-unclaimed-state",),
    doc="Whether a query may start from the savepoint of a larger query, such as a STATEMENT SET with "
    "another INSERT. The job leaves out the state that it does not need. Formerly "
    "`execution.savepoint.ignore-unclaimed-state`.",
)
EVOLUTION = Option(
    key="tidemill.evolution",
    kind=str,
    default="keep",
    own=True,
    choices=("keep", "backfill"),
    doc="How ALTER JOB ... AS, and an INSERT that starts on a checkpoint or a savepoint, treat the state of "
    "the old query. With `keep` the new query takes over "
    "state that has the same meaning, and other changes are refused. `backfill` computes the new "
    "query from the beginning of its sources, and sends the difference to the sinks.",
)
SAVEPOINT_TARGET = Option(
    key="tidemill.savepoint.target",
    kind=str,
    default="",
    own=True,
    doc="The path of the new savepoint that INSERT, UPDATE and DELETE of a table in a catalog of type "
    "`savepoint` write.",
)
BUILD_SOURCES = Option(
    key="tidemill.savepoint.sources",
    kind=str,
    default="READ",
    own=True,
    choices=("READ", "UNREAD"),
    doc="How CREATE SAVEPOINT ... FOR INSERT treats the sources. READ: their current content counts "
    "as read, and the job reads only later rows. UNREAD: the options of each source decide where "
    "the job begins, such as `scan.startup.mode`.",
)
BUILD_WATERMARK = Option(
    key="tidemill.savepoint.watermark",
    kind=str,
    default="",
    own=True,
    doc="The event time that the history of CREATE SAVEPOINT ... FOR INSERT has reached, such as "
    "`2024-01-01 10:30:00`; for sources whose time is TIMESTAMP_LTZ the text is UTC. The job begins with "
    "this watermark: windows that ended by then are not shown again, and their rows are late. Without the "
    "option event time begins again.",
)
CHECKPOINT_INTERVAL = Option(
    key="execution.checkpointing.interval",
    kind=Duration,
    default=Duration(0),
    doc="Accepted for Flink's scripts, without effect: every epoch is a checkpoint.",
)
ARROW_EXPRESSIONS = Option(
    key="table.exec.arrow-expressions.enabled",
    kind=bool,
    default=True,
    own=True,
    doc="Whether a streaming job computes projections and filters over Arrow batches, in the Python "
    "worker that has the rows. A projection or filter qualifies if the worker computes all of its "
    "functions exactly. Otherwise the JVM computes it.",
)
OPTIONS = (
    ARROW_EXPRESSIONS,
    RUNTIME_MODE,
    PARALLELISM,
    CHECKPOINT_DIRECTORY,
    SAVEPOINT_DIRECTORY,
    RECOVERY_PATH,
    CLAIM_MODE,
    IGNORE_UNCLAIMED,
    EVOLUTION,
    SAVEPOINT_TARGET,
    BUILD_SOURCES,
    BUILD_WATERMARK,
    CHECKPOINT_INTERVAL,
)
