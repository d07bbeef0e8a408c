"""Maps Flink's options of batch jobs to Spark's: adaptive execution and joins.

Spark measures the data of a stage as Flink does: by the bytes that an average task shall have, within
bounds. Spark can merge partitions, but never split them. So an exchange starts with as many partitions as its
data may need. Options of Spark that the user has set stay as they are.
"""

from __future__ import annotations

from tidemill.config import batch_options as o
from tidemill.config.execution_options import PARALLELISM
from tidemill.config.optimizer_options import BROADCAST_THRESHOLD
from tidemill.config.option import Configuration
from tidemill.connectors.filesystem.native import OPENING, OPENING_ONE_OF_MANY
from tidemill.runtime.spark.settings import WIDTH

_CHEAP_VOLUME = 64 << 20
"""Bytes of an exchange, compressed, that one task still takes easily."""

_ADAPTIVE = "spark.sql.adaptive"
_EXACT = {
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # A float within a row would be compared with a constant by the reader, which knows no -0.0.
    "spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources": "",
    # Spark's reader of ORC takes text in another order than writers where it skips rows, and cannot skip
    # to where a column has no more values.
    "spark.sql.orc.filterPushdown": "false",
    # Lists of files are ours; Spark looks at each in the driver, where a job would cost more.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}


NOTHING_SENT = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    f"{_ADAPTIVE}.autoBroadcastJoinThreshold": "-1",
}
"""Settings under which Spark sends no side of a join to every task if there is another way."""


def batch_settings(config: Configuration, width: int, volume: int | None) -> dict[str, str]:
    """Spark's settings of one batch job. ``width``: what `parallelism.default` comes to; ``volume``: about
    how many bytes its tables have at most, None where that is unknown."""
    return {
        **_EXACT,
        f"{_ADAPTIVE}.enabled": "true",
        **_parallelism(config, width, volume),
        **_joins(config),
        **_skew(config),
        **_runtime_filters(config),
        "spark.sql.optimizer.dynamicPartitionPruning.enabled": _text(config.read(o.DYNAMIC_FILTERING)),
    }


def _parallelism(config: Configuration, width: int, volume: int | None) -> dict[str, str]:
    coalesce = f"{_ADAPTIVE}.coalescePartitions"
    sources = config.read(o.SOURCE_PARALLELISM)
    reading = {"spark.sql.files.minPartitionNum": str(sources)} if sources > 0 else {}
    if not config.read(o.AUTO_PARALLELISM):
        return {f"{coalesce}.enabled": "false", WIDTH: str(width), **reading}
    each = config.read(o.TASK_VOLUME).bytes if o.TASK_VOLUME.key in config else _CHEAP_VOLUME
    most = _most_tasks(config, width)
    wanted = most if volume is None else -(-volume // max(each, 1))
    found = {
        OPENING: OPENING_ONE_OF_MANY,
        f"{coalesce}.enabled": "true",
        f"{_ADAPTIVE}.advisoryPartitionSizeInBytes": str(each),
        WIDTH: str(max(min(most, max(wanted, width)), 1)),
        **reading,
    }
    if o.MIN_PARALLELISM.key in config:
        found[f"{coalesce}.minPartitionNum"] = str(config.read(o.MIN_PARALLELISM))
    return found


def _most_tasks(config: Configuration, width: int) -> int:
    fixed = o.MAX_PARALLELISM.key not in config and config.read(PARALLELISM) > 0
    return width if fixed else config.read(o.MAX_PARALLELISM)


def _joins(config: Configuration) -> dict[str, str]:
    strategy = config.read(o.ADAPTIVE_BROADCAST).upper()
    threshold = str(config.read(BROADCAST_THRESHOLD))
    return {
        "spark.sql.autoBroadcastJoinThreshold": "-1" if strategy == "RUNTIME_ONLY" else threshold,
        f"{_ADAPTIVE}.autoBroadcastJoinThreshold": "-1" if strategy == "NONE" else threshold,
    }


def _skew(config: Configuration) -> dict[str, str]:
    strategy = config.read(o.SKEWED_JOIN).upper()
    skew = f"{_ADAPTIVE}.skewJoin"
    return {
        f"{skew}.enabled": _text(strategy != "NONE"),
        f"{_ADAPTIVE}.forceOptimizeSkewedJoin": _text(strategy == "FORCED"),
        f"{skew}.skewedPartitionFactor": str(config.read(o.SKEWED_FACTOR)),
        f"{skew}.skewedPartitionThresholdInBytes": str(config.read(o.SKEWED_THRESHOLD).bytes),
    }


def _runtime_filters(config: Configuration) -> dict[str, str]:
    """Spark's own choice where nothing was asked for."""
    if o.RUNTIME_FILTER.key not in config:
        return {}
    bloom = "spark.sql.optimizer.runtime.bloomFilter"
    return {
        f"{bloom}.enabled": _text(config.read(o.RUNTIME_FILTER)),
        f"{bloom}.creationSideThreshold": str(config.read(o.RUNTIME_FILTER_BUILD).bytes),
        f"{bloom}.applicationSideScanSizeThreshold": str(config.read(o.RUNTIME_FILTER_PROBE).bytes),
    }


def _text(value: bool) -> str:
    return "true" if value else "false"
