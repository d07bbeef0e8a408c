"""Options of batch jobs: how wide their stages are, what joins do while they run, slow tasks."""

from __future__ import annotations

from tidemill.config.option import Duration, MemorySize, Option

AUTO_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.enabled",
    kind=bool,
    default=True,
    doc="Whether the size of its data decides how many tasks a stage behind an exchange has. If "
    "false, each such stage has `parallelism.default` tasks.",
)
MIN_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.min-parallelism",
    kind=int,
    default=1,
    least=1,
    doc="The fewest tasks of such a stage. Unset, a stage with little data still uses all cores, as "
    "long as each of its tasks has a megabyte.",
)
MAX_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.max-parallelism",
    kind=int,
    default=128,
    least=1,
    doc="The most tasks of such a stage. If only `parallelism.default` is set, its value.",
)
TASK_VOLUME = Option(
    key="execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    kind=MemorySize,
    default=MemorySize(16 << 20),
    least=1,
    doc="The approximate number of bytes for a task of such a stage. Unset, a task gets up to 64 MB, "
    "if that is enough data for all cores: more tasks than cores cost more than they save.",
)
SOURCE_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.default-source-parallelism",
    kind=int,
    default=0,
    doc="The fewest tasks that read a table; 0: the number of cores. Large files need more tasks.",
)
ADAPTIVE_BROADCAST = Option(
    key="table.optimizer.adaptive-broadcast-join.strategy",
    kind=str,
    default="AUTO",
    choices=("AUTO", "RUNTIME_ONLY", "NONE"),
    doc="When Tidemill decides to send a side of a join that fits "
    "`table.optimizer.join.broadcast-threshold` to every task. AUTO: before the query and while "
    "it runs. RUNTIME_ONLY: only while it runs. NONE: only before.",
)
SKEWED_JOIN = Option(
    key="table.optimizer.skewed-join-optimization.strategy",
    kind=str,
    default="AUTO",
    choices=("AUTO", "FORCED", "NONE"),
    doc="Whether a join cuts a partition that is far too large for one task. AUTO: if this needs no "
    "further exchange. FORCED: always. NONE: never.",
)
SKEWED_FACTOR = Option(
    key="table.optimizer.skewed-join-optimization.skewed-factor",
    kind=float,
    default=4.0,
    above=0,
    doc="A partition is cut only if it is larger than the median partition times this factor.",
)
SKEWED_THRESHOLD = Option(
    key="table.optimizer.skewed-join-optimization.skewed-threshold",
    kind=MemorySize,
    default=MemorySize(256 << 20),
    least=1,
    doc="A partition is cut only if it is larger than this size.",
)
DYNAMIC_FILTERING = Option(
    key="table.optimizer.dynamic-filtering.enabled",
    kind=bool,
    default=True,
    doc="Whether a join skips partitions of a table for which the other side has no rows, while the "
    "query runs.",
)
RUNTIME_FILTER = Option(
    key="table.optimizer.runtime-filter.enabled",
    kind=bool,
    default=False,
    doc="Whether a join drops rows before an exchange if its small side has no such key.",
)
RUNTIME_FILTER_BUILD = Option(
    key="table.optimizer.runtime-filter.max-build-data-size",
    kind=MemorySize,
    default=MemorySize(150 << 20),
    doc="The largest size of the small side for such a filter.",
)
RUNTIME_FILTER_PROBE = Option(
    key="table.optimizer.runtime-filter.min-probe-data-size",
    kind=MemorySize,
    default=MemorySize(10 << 30),
    doc="The smallest size of the large side for such a filter.",
)
SPECULATION = Option(
    key="execution.batch.speculative.enabled",
    kind=bool,
    default=False,
    doc="Whether a slow task gets a copy on another host, and the first to end counts. Unset: true on "
    "a cluster, false within one machine. Read when Spark starts.",
)
SPECULATION_ATTEMPTS = Option(
    key="execution.batch.speculative.max-concurrent-executions",
    kind=int,
    default=2,
    least=1,
    doc="The most attempts at a task at one time. With 1 there are no copies. Spark starts at most "
    "one copy, so more than 2 means 2. Read when Spark starts.",
)
BLOCK_SLOW_NODES = Option(
    key="execution.batch.speculative.block-slow-node-duration",
    kind=Duration,
    default=Duration(60_000),
    doc="How long a host gets no more tasks after the copy of one of its tasks ended first on another "
    "host; 0: the host is never blocked. At least one host is always left. Read when Spark "
    "starts.",
)
SLOW_CHECK_INTERVAL = Option(
    key="slow-task-detector.check-interval",
    kind=Duration,
    default=Duration(1000),
    doc="The interval between two checks for slow tasks. Read when Spark starts.",
)
SLOW_LOWER_BOUND = Option(
    key="slow-task-detector.execution-time.baseline-lower-bound",
    kind=Duration,
    default=Duration(60_000),
    doc="A task with a shorter run time is not slow. Read when Spark starts.",
)
SLOW_MULTIPLIER = Option(
    key="slow-task-detector.execution-time.baseline-multiplier",
    kind=float,
    default=1.5,
    above=0,
    doc="A task is slow if its run time is longer than the median times this factor. Read when Spark starts.",
)
SLOW_RATIO = Option(
    key="slow-task-detector.execution-time.baseline-ratio",
    kind=float,
    default=0.75,
    least=0,
    most=1,
    doc="The share of a stage's tasks that must have ended before a task counts as slow. Read when "
    "Spark starts.",
)
BLOCKING = "ALL_EXCHANGES_BLOCKING"
SHUFFLE_MODE = Option(
    key="execution.batch-shuffle-mode",
    kind=str,
    default=BLOCKING,
    choices=(
        BLOCKING,
        "ALL_EXCHANGES_PIPELINED",
        "ALL_EXCHANGES_HYBRID_FULL",
        "ALL_EXCHANGES_HYBRID_SELECTIVE",
    ),
    doc="ALL_EXCHANGES_BLOCKING: a stage begins when its input is complete. With all other values the "
    "tasks that read an exchange run beside the tasks that write it, if all tasks of the query "
    "have slots at once; otherwise exchanges are blocking. EXPLAIN shows the mode and the reason.",
)
OPTIONS = (
    AUTO_PARALLELISM,
    MIN_PARALLELISM,
    MAX_PARALLELISM,
    TASK_VOLUME,
    SOURCE_PARALLELISM,
    ADAPTIVE_BROADCAST,
    SKEWED_JOIN,
    SKEWED_FACTOR,
    SKEWED_THRESHOLD,
    DYNAMIC_FILTERING,
    RUNTIME_FILTER,
    RUNTIME_FILTER_BUILD,
    RUNTIME_FILTER_PROBE,
    SPECULATION,
    SPECULATION_ATTEMPTS,
    BLOCK_SLOW_NODES,
    SLOW_CHECK_INTERVAL,
    SLOW_LOWER_BOUND,
    SLOW_MULTIPLIER,
    SLOW_RATIO,
    SHUFFLE_MODE,
)
