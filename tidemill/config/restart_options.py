"""Whether, and how soon, a streaming job that failed is started again: Flink's keys."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

TYPE = Option(
    key="restart-strategy.type",
    kind=str,
    default="none",
    choices=(
        *("none", "off", "disable"),
        *("fixed-delay", "fixeddelay", "failure-rate", "failurerate"),
        *("exponential-delay", "exponentialdelay"),
    ),
    doc="Starts the job of a streaming INSERT again, after its last epoch, if the cause of the "
    "failure lies outside its query: a database, a store, processes of Spark. `none`, "
    "`fixed-delay`, `failure-rate` or `exponential-delay`. It needs a checkpoint directory. "
    "Flink's default with checkpoints is `exponential-delay`.",
)
FIXED_ATTEMPTS = Option(
    key="restart-strategy.fixed-delay.attempts",
    kind=int,
    default=1,
    least=0,
    doc="How often `fixed-delay` starts a job again before the job has failed.",
)
FIXED_DELAY = Option(
    key="restart-strategy.fixed-delay.delay",
    kind=Duration,
    default=Duration(1_000),
    doc="How long `fixed-delay` waits before each start.",
)
RATE_FAILURES = Option(
    key="restart-strategy.failure-rate.max-failures-per-interval",
    kind=int,
    default=1,
    least=1,
    doc="How many failures `failure-rate` accepts within the interval.",
)
RATE_INTERVAL = Option(
    key="restart-strategy.failure-rate.failure-rate-interval",
    kind=Duration,
    default=Duration(60_000),
    doc="The interval in which `failure-rate` counts failures.",
)
RATE_DELAY = Option(
    key="restart-strategy.failure-rate.delay",
    kind=Duration,
    default=Duration(1_000),
    doc="How long `failure-rate` waits before it starts a job again.",
)
FIRST_BACKOFF = Option(
    key="restart-strategy.exponential-delay.initial-backoff",
    kind=Duration,
    default=Duration(1_000),
    doc="How long `exponential-delay` waits at first.",
)
MAX_BACKOFF = Option(
    key="restart-strategy.exponential-delay.max-backoff",
    kind=Duration,
    default=Duration(60_000),
    doc="How long `exponential-delay` waits at most.",
)
BACKOFF_FACTOR = Option(
    key="restart-strategy.exponential-delay.backoff-multiplier",
    kind=float,
    default=1.5,
    doc="The factor by which the wait grows after each failure.",
)
BACKOFF_RESET = Option(
    key="restart-strategy.exponential-delay.reset-backoff-threshold",
    kind=Duration,
    default=Duration(3_600_000),
    doc="After this time without a failure, `exponential-delay` begins with the first wait again.",
)
JITTER = Option(
    key="restart-strategy.exponential-delay.jitter-factor",
    kind=float,
    default=0.1,
    doc="The part of a wait that is added or subtracted at random, so that jobs do not all start at once.",
)
BACKOFF_ATTEMPTS = Option(
    key="restart-strategy.exponential-delay.attempts-before-reset-backoff",
    kind=int,
    default=2**31 - 1,
    least=0,
    doc="How often `exponential-delay` starts a job again before the job fails. The count starts "
    "again when the waits start again.",
)
OPTIONS = (
    TYPE,
    FIXED_ATTEMPTS,
    FIXED_DELAY,
    RATE_FAILURES,
    RATE_INTERVAL,
    RATE_DELAY,
    FIRST_BACKOFF,
    MAX_BACKOFF,
    BACKOFF_FACTOR,
    BACKOFF_RESET,
    JITTER,
    BACKOFF_ATTEMPTS,
)
