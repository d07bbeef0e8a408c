"""Hosts that get no tasks for a while because one of theirs was slow: a copy of it, begun later, came first
elsewhere (``execution.batch.speculative.block-slow-node-duration``).

A thread beside the start tells the scheduler (``spark_internals.slow_nodes``). Whatever goes wrong there
costs the blocking alone, and the log says so.
"""

from __future__ import annotations

import logging
import threading

from pyspark import SparkContext

from tidemill.runtime.spark.applications import application_id
from tidemill.runtime.stage_runs import SlowNode
from tidemill.spark_internals.errors import JavaError, java_says
from tidemill.spark_internals.slow_nodes import BlockedHosts
from tidemill.spark_internals.versions import SLOW_HOSTS, is_on

BLOCKED_MILLIS = "spark.tidemill.slowNode.blockedMillis"
"""As Spark is told it when it starts."""
_LOGGER = logging.getLogger("tidemill")
_BY_APPLICATION: dict[str, BlockedHosts] = {}


def begin_to_exclude(context: SparkContext) -> threading.Thread:
    """A thread that sees to it where the application was started so."""
    thread = threading.Thread(target=_exclude, args=(context,), name="tidemill-slow-nodes", daemon=True)
    thread.start()
    return thread


def _exclude(context: SparkContext) -> None:
    conf = context.getConf()
    millis = int(conf.get(BLOCKED_MILLIS, "0") or 0)
    if millis <= 0 or conf.get("spark.speculation", "false") != "true" or not is_on(SLOW_HOSTS):
        return
    try:
        _BY_APPLICATION[application_id(context)] = BlockedHosts(context, millis)
    except (JavaError, TypeError) as e:  # another build of Spark
        _LOGGER.warning("hosts that are slow still get tasks: %s", java_says(str(e)))


def slow_nodes(context: SparkContext, begun: float, ended: float) -> tuple[SlowNode, ...]:
    """Those that were blocked at some time between the two."""
    blocked = _BY_APPLICATION.get(application_id(context))
    lines = [] if blocked is None else blocked.lines()
    found = (_node(*line.split()) for line in lines)
    return tuple(node for node in found if node.begun <= ended and node.ended >= begun)


def _node(host: str, begun: str, ended: str, stage: str, task: str) -> SlowNode:
    return SlowNode(
        host=host, begun=int(begun) / 1000, ended=int(ended) / 1000, stage=int(stage), task=int(task)
    )
