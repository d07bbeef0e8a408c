"""Maps Flink's options of speculative tasks to Spark's, which reads them when it starts."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.config import batch_options as o
from tidemill.config.option import Configuration
from tidemill.runtime.spark.slow_nodes import BLOCKED_MILLIS

_OUT_OF_PROPORTION = 20.0
_HEARTBEAT_MILLIS = 10_000


def speculation(options: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings of speculative tasks, which it reads when it starts; none where nobody asked."""
    return cluster_speculation(options) if o.SPECULATION.key in options else {}


def cluster_speculation(options: Mapping[str, str]) -> dict[str, str]:
    """The same where it is on unless somebody says no: where tasks have more than one machine to run on."""
    config = Configuration({o.SPECULATION.key: "true", **options})
    bound = config.read(o.SLOW_LOWER_BOUND).milliseconds
    copies = config.read(o.SPECULATION) and config.read(o.SPECULATION_ATTEMPTS) > 1
    return {
        "spark.speculation": _text(copies),
        "spark.speculation.interval": f"{max(config.read(o.SLOW_CHECK_INTERVAL).milliseconds, 1)}ms",
        "spark.speculation.minTaskRuntime": f"{bound}ms",
        "spark.speculation.multiplier": str(config.read(o.SLOW_MULTIPLIER)),
        "spark.speculation.quantile": str(config.read(o.SLOW_RATIO)),
        # A task that has more to read than others is not slow: it is judged by its rate, which executors tell
        # with their heartbeats, and by its time alone where that is out of all proportion.
        "spark.speculation.efficiency.enabled": "true",
        "spark.speculation.efficiency.longRunTaskFactor": str(_OUT_OF_PROPORTION),
        BLOCKED_MILLIS: str(config.read(o.BLOCK_SLOW_NODES).milliseconds),
        "spark.executor.heartbeatInterval": f"{max(min(bound // 2, _HEARTBEAT_MILLIS), 100)}ms",
    }


def _text(value: bool) -> str:
    return "true" if value else "false"
