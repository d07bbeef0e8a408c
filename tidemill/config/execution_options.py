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
    formerly=("state.savepoints.dir",),
    doc="Where CREATE SAVEPOINT and STOP JOB ... WITH SAVEPOINT write savepoints, each in a folder of its "
    "own. Formerly `state.savepoints.dir`.",
)
RECOVERY_PATH = Option(
    key="execution.state-recovery.path",
    kind=str,
    default="",
    formerly=("execution.savepoint.path",),
    doc="A savepoint, or the checkpoint directory of a job that has ended, that a job starts from if its own "
    "checkpoint directory has no job yet. Formerly `execution.savepoint.path`.",
)
CLAIM_MODE = Option(
    key="execution.state-recovery.claim-mode",
    kind=str,
    default="NO_CLAIM",
    formerly=("execution.savepoint-restore-mode",),
    choices=("NO_CLAIM", "CLAIM"),
    doc="NO_CLAIM leaves the savepoint as it is, for any number of jobs. CLAIM gives it to the job, which "
    "removes it once it has taken it up. Formerly `execution.savepoint-restore-mode`.",
)
IGNORE_UNCLAIMED = Option(
    key="execution.state-recovery.ignore-unclaimed-state",
    kind=bool,
    default=False,
    formerly=("execution.savepoint.ignore-unclaimed-state",),
    doc="Whether a query may start from the savepoint of a larger one, such as a STATEMENT SET with another "
    "INSERT: state that it does not need is left out. Formerly `execution.savepoint.ignore-unclaimed-state`.",
)
EVOLUTION = Option(
    key="tidemill.evolution",
    kind=str,
    default="keep",
    own=True,
    choices=("keep", "backfill"),
    doc="What ALTER JOB ... AS, and an INSERT that starts on a checkpoint or a savepoint, do with state of "
    "another query. `keep` lets the new query take over what means the same to it, and refuses other "
    "changes. `backfill` computes the new query from the beginning of its sources, and gives the sinks the "
    "difference.",
)
SAVEPOINT_TARGET = Option(
    key="tidemill.savepoint.target",
    kind=str,
    default="",
    own=True,
    doc="Where INSERT, UPDATE and DELETE of a table of a catalog of type `savepoint` write a new savepoint.",
)
BUILD_SOURCES = Option(
    key="tidemill.savepoint.sources",
    kind=str,
    default="READ",
    own=True,
    choices=("READ", "UNREAD"),
    doc="What CREATE SAVEPOINT ... FOR INSERT does with the sources. READ: what they hold when the statement "
    "runs counts as read, and the job reads what comes after. UNREAD: the job begins where the options of "
    "each source say, such as `scan.startup.mode`.",
)
CHECKPOINT_INTERVAL = Option(
    key="execution.checkpointing.interval",
    kind=Duration,
    default=Duration(0),
    doc="Accepted for Flink's scripts; every epoch is a checkpoint here, so it changes nothing.",
)
ARROW_EXPRESSIONS = Option(
    key="table.exec.arrow-expressions.enabled",
    kind=bool,
    default=True,
    own=True,
    doc="Whether a streaming job evaluates projections and filters over Arrow batches, in the Python worker "
    "that has the rows, if all of their functions can be evaluated there exactly. Otherwise the JVM does.",
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
    CHECKPOINT_INTERVAL,
)
