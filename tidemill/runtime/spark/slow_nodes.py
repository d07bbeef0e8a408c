"""Hosts that get no tasks for a while because one of theirs was slow: a copy of it, begun later, came first
elsewhere (``execution.batch.speculative.block-slow-node-duration``).

Spark's scheduler leaves out executors that its health tracker excludes. ``SlowNodes.java`` is a tracker that
does so for slowness; Spark's own compiler (Janino) makes it, in a thread beside the start. Whatever goes
wrong there costs the blocking alone, and the log says so. Cost: a compilation when an application starts on
a cluster, and a few look-ups for each executor that is offered for tasks.
"""

from __future__ import annotations

import logging
import threading
from importlib import resources
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from tidemill.runtime.spark.applications import application_id
from tidemill.runtime.spark.failures import java_says
from tidemill.runtime.stage_runs import SlowNode

BLOCKED_MILLIS = "spark.tidemill.slowNode.blockedMillis"
"""As Spark is told it when it starts."""
_LOGGER = logging.getLogger("tidemill")
_SOURCE = "SlowNodes.java"
_MAKER = "tidemill.Install"
_BY_APPLICATION: dict[str, Any] = {}
_LOADERS: dict[str, Any] = {}


def begin_to_exclude(context: SparkContext) -> threading.Thread:
    """A thread that sees to it where the application was started so."""
    thread = threading.Thread(target=_exclude, args=(context,), name="tidemill-slow-nodes", daemon=True)
    thread.start()
    return thread


def _exclude(context: SparkContext) -> None:
    conf = context.getConf()
    millis = int(conf.get(BLOCKED_MILLIS, "0") or 0)
    if millis <= 0 or conf.get("spark.speculation", "false") != "true":
        return
    try:
        _BY_APPLICATION[application_id(context)] = _installed(context, millis)
    except (Py4JError, TypeError) as e:  # another build of Spark
        _LOGGER.warning("hosts that are slow still get tasks: %s", java_says(str(e)))


def _installed(context: SparkContext, millis: int) -> Any:
    java: Any = context._jsc
    return made(context, _MAKER).apply(java.sc(), millis)


def made(context: SparkContext, name: str, *arguments: Any) -> Any:
    """A new object of a class of ``SlowNodes.java``."""
    jvm: Any = context._jvm
    gateway: Any = context._gateway
    loader = _LOADERS.get(application_id(context))
    if loader is None:
        loader = _LOADERS[application_id(context)] = _compiled(context)
    given = gateway.new_array(jvm.Object, len(arguments))
    for place, argument in enumerate(arguments):
        given[place] = argument
    return loader.loadClass(name).getConstructors()[0].newInstance(given)


def _compiled(context: SparkContext) -> Any:
    """What loads the classes; Py4J takes those of one name for one."""
    jvm: Any = context._jvm
    java: Any = context._jsc
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.getClass().getClassLoader())
    compiler.cook(resources.files("tidemill.runtime.spark").joinpath(_SOURCE).read_text())
    return compiler.getClassLoader()


def slow_nodes(context: SparkContext, begun: float, ended: float) -> tuple[SlowNode, ...]:
    """Those that were blocked at some time between the two."""
    blocked = _BY_APPLICATION.get(application_id(context))
    lines = "" if blocked is None else str(blocked.told())
    found = (_node(*line.split()) for line in lines.splitlines())
    return tuple(node for node in found if node.begun <= ended and node.ended >= begun)


def _node(host: str, begun: str, ended: str, stage: str, task: str) -> SlowNode:
    return SlowNode(
        host=host, begun=int(begun) / 1000, ended=int(ended) / 1000, stage=int(stage), task=int(task)
    )
