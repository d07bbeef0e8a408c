"""Options of batch jobs: how wide their stages are, what joins do while they run, slow tasks."""

from __future__ import annotations

from tidemill.config.option import Duration, MemorySize, Option

AUTO_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.enabled",
    kind=bool,
    default=True,
    doc="Whether each stage behind an exchange has as many tasks as its data asks for. Without, all have "
    "`parallelism.default`.",
)
MIN_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.min-parallelism",
    kind=int,
    default=1,
    least=1,
    doc="The fewest tasks of such a stage. Unset, a stage with little data still uses the cores there are, "
    "as long as each of its tasks has a megabyte.",
)
MAX_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.max-parallelism",
    kind=int,
    default=128,
    least=1,
    doc="The most tasks of such a stage; `parallelism.default` where only that is set.",
)
TASK_VOLUME = Option(
    key="execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    kind=MemorySize,
    default=MemorySize(16 << 20),
    least=1,
    doc="About how many bytes a task of such a stage gets. Unset, tasks get up to 64 MB each where that is "
    "enough for all cores: more tasks than there are cores cost more than they bring.",
)
SOURCE_PARALLELISM = Option(
    key="execution.batch.adaptive.auto-parallelism.default-source-parallelism",
    kind=int,
    default=0,
    doc="The fewest tasks that a table is read by; 0: as many as there are cores. Large files make more.",
)
ADAPTIVE_BROADCAST = Option(
    key="table.optimizer.adaptive-broadcast-join.strategy",
    kind=str,
    default="AUTO",
    choices=("AUTO", "RUNTIME_ONLY", "NONE"),
    doc="When a side of a join that fits `table.optimizer.join.broadcast-threshold` is chosen to be sent to "
    "every task: before and while the query runs, only while it runs, or only before.",
)
SKEWED_JOIN = Option(
    key="table.optimizer.skewed-join-optimization.strategy",
    kind=str,
    default="AUTO",
    choices=("AUTO", "FORCED", "NONE"),
    doc="Whether what is far too much for one task of a join is cut into several: where that costs no "
    "further exchange, always, or never.",
)
SKEWED_FACTOR = Option(
    key="table.optimizer.skewed-join-optimization.skewed-factor",
    kind=float,
    default=4.0,
    above=0,
    doc="How many times the median a task's data must be to be cut.",
)
SKEWED_THRESHOLD = Option(
    key="table.optimizer.skewed-join-optimization.skewed-threshold",
    kind=MemorySize,
    default=MemorySize(256 << 20),
    least=1,
    doc="How large a task's data must be to be cut.",
)
DYNAMIC_FILTERING = Option(
    key="table.optimizer.dynamic-filtering.enabled",
    kind=bool,
    default=True,
    doc="Whether partitions of a table are left out that the other side of a join turns out to have no rows "
    "for.",
)
RUNTIME_FILTER = Option(
    key="table.optimizer.runtime-filter.enabled",
    kind=bool,
    default=False,
    doc="Whether rows are left out before an exchange that the small side of their join has no key for.",
)
RUNTIME_FILTER_BUILD = Option(
    key="table.optimizer.runtime-filter.max-build-data-size",
    kind=MemorySize,
    default=MemorySize(150 << 20),
    doc="The most bytes that the small side may have for that.",
)
RUNTIME_FILTER_PROBE = Option(
    key="table.optimizer.runtime-filter.min-probe-data-size",
    kind=MemorySize,
    default=MemorySize(10 << 30),
    doc="The fewest bytes that the large side must have for that.",
)
SPECULATION = Option(
    key="execution.batch.speculative.enabled",
    kind=bool,
    default=False,
    doc="Whether slow tasks are started again elsewhere, and the first to end counts. On a cluster they are "
    "unless it is set. Read when Spark starts.",
)
SPECULATION_ATTEMPTS = Option(
    key="execution.batch.speculative.max-concurrent-executions",
    kind=int,
    default=2,
    least=1,
    doc="The most attempts at a task that run at once. With 1 there are no copies; Spark never starts more "
    "than one, so that more than 2 means 2. Read when Spark starts.",
)
BLOCK_SLOW_NODES = Option(
    key="execution.batch.speculative.block-slow-node-duration",
    kind=Duration,
    default=Duration(60_000),
    doc="How long a host gets no more tasks after a copy of one of its tasks came first elsewhere; 0: it "
    "goes on getting them. Some host is always left. Read when Spark starts.",
)
SLOW_CHECK_INTERVAL = Option(
    key="slow-task-detector.check-interval",
    kind=Duration,
    default=Duration(1000),
    doc="How often slow tasks are looked for. Read when Spark starts.",
)
SLOW_LOWER_BOUND = Option(
    key="slow-task-detector.execution-time.baseline-lower-bound",
    kind=Duration,
    default=Duration(60_000),
    doc="A task that has run for less is not slow. Read when Spark starts.",
)
SLOW_MULTIPLIER = Option(
    key="slow-task-detector.execution-time.baseline-multiplier",
    kind=float,
    default=1.5,
    above=0,
    doc="A task is slow that has run for as many times the median. Read when Spark starts.",
)
SLOW_RATIO = Option(
    key="slow-task-detector.execution-time.baseline-ratio",
    kind=float,
    default=0.75,
    least=0,
    most=1,
    doc="The share of a stage's tasks that must have ended before any is slow. Read when Spark starts.",
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
    doc="With all values but the first, tasks that read an exchange run beside those that write it where all "
    "tasks of the query have slots at once; else exchanges are blocking. EXPLAIN says which, and why.",
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
