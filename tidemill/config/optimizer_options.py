"""Options of the planner: how aggregations are cut into phases, what joins send to every task."""

from __future__ import annotations

from tidemill.config.option import LONG, Option

AGG_PHASE_STRATEGY = Option(
    key="table.optimizer.agg-phase-strategy",
    kind=str,
    default="AUTO",
    choices=("AUTO", "ONE_PHASE", "TWO_PHASE"),
    doc="Whether an aggregation is cut into a local and a global phase, if that is possible.",
)
DISTINCT_SPLIT_ENABLED = Option(
    key="table.optimizer.distinct-agg.split.enabled",
    kind=bool,
    default=False,
    doc="Whether an aggregation with DISTINCT is split into a partial aggregation per bucket and a "
    "final aggregation.",
)
DISTINCT_SPLIT_BUCKETS = Option(
    key="table.optimizer.distinct-agg.split.bucket-num",
    kind=int,
    default=1024,
    least=1,
    doc="The number of buckets of a split distinct aggregation.",
)
INCREMENTAL_AGG_ENABLED = Option(
    key="table.optimizer.incremental-agg-enabled",
    kind=bool,
    default=True,
    doc="Whether the inner phases of a split distinct aggregation become one incremental aggregation.",
)
DISTINCT_STATE_REUSE = Option(
    key="table.optimizer.distinct-state-reuse",
    kind=str,
    default="AUTO",
    choices=("AUTO", "ON", "OFF"),
    own=True,
    doc="Whether `COUNT(DISTINCT v)` by keys with few known values (`WHERE k IN ('A', 'B')`, a CASE "
    "of constants) keeps each `v` once, with a bit for each key, instead of once for each key. "
    "AUTO: if rows are never taken back, and the state is hardly larger even if no two keys share "
    "a value. ON: also if rows are taken back. For streaming: in `TUMBLE`, `HOP` and `CUMULATE` "
    "windows by event time, without windows with mini-batches and without a state TTL.",
)
BROADCAST_THRESHOLD = Option(
    key="table.optimizer.join.broadcast-threshold",
    kind=int,
    default=10 << 20,
    least=-1,
    most=LONG,
    doc="If a side of a batch join is smaller, Spark may send it to every task instead of exchanging "
    "it; -1 turns this off.",
)
NON_DETERMINISTIC_UPDATES = Option(
    key="table.optimizer.non-deterministic-update.strategy",
    kind=str,
    default="IGNORE",
    choices=("IGNORE", "TRY_RESOLVE"),
    doc="Accepted, without effect: a retraction always has the values of the row that it takes back, "
    "also of `NOW()` and `UUID()`.",
)
OPTIONS = (
    NON_DETERMINISTIC_UPDATES,
    AGG_PHASE_STRATEGY,
    DISTINCT_SPLIT_ENABLED,
    DISTINCT_SPLIT_BUCKETS,
    INCREMENTAL_AGG_ENABLED,
    DISTINCT_STATE_REUSE,
    BROADCAST_THRESHOLD,
)
