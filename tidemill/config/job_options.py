"""What is done beside a running job: audits, and its parallelism by its load."""

from __future__ import annotations

from tidemill.config.option import Duration, Option

AUDIT_EVERY = Option(
    key="tidemill.audit.every",
    kind=Duration,
    default=Duration(0),
    own=True,
    doc="How often a streaming INSERT with a checkpoint directory is verified beside its run, as VERIFY "
    "JOB does. An audit reads the whole history again, beside the job. Differences go to the warnings and "
    "the metrics. 0: never.",
)
AUTOSCALER_ENABLED = Option(
    key="job.autoscaler.enabled",
    kind=bool,
    default=False,
    doc="Whether a streaming INSERT with a checkpoint directory gets more or fewer partitions by its load, "
    "between two epochs.",
)
AUTOSCALER_INTERVAL = Option(
    key="job.autoscaler.stabilization.interval",
    kind=Duration,
    default=Duration(300_000),
    doc="How long the autoscaler watches a job before it changes the number of partitions, and after each "
    "change.",
)
AUTOSCALER_TARGET = Option(
    key="job.autoscaler.utilization.target",
    kind=float,
    default=0.7,
    doc="The part of its time that a job should spend in epochs. Above it, the autoscaler adds partitions. "
    "Below a third of it, the autoscaler removes partitions.",
)
AUTOSCALER_LEAST = Option(
    key="job.autoscaler.vertex.min-parallelism",
    kind=int,
    default=1,
    least=1,
    doc="The fewest partitions that the autoscaler gives a job.",
)
AUTOSCALER_MOST = Option(
    key="job.autoscaler.vertex.max-parallelism",
    kind=int,
    default=0,
    least=0,
    doc="The most partitions that the autoscaler gives a job; 0 takes the number of cores Spark has.",
)
OPTIONS = (
    AUDIT_EVERY,
    AUTOSCALER_ENABLED,
    AUTOSCALER_INTERVAL,
    AUTOSCALER_TARGET,
    AUTOSCALER_LEAST,
    AUTOSCALER_MOST,
)
