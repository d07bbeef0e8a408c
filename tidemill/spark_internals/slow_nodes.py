"""Hosts that get no tasks for a while (``org.apache.spark.scheduler.HealthTracker``).

Spark's scheduler leaves out executors that its health tracker excludes. ``SlowNodes.java`` is a tracker that
does so for slowness; Spark's own compiler (Janino) makes it. Cost: a compilation for an application, and a
few look-ups for each executor that is offered for tasks.
"""

from __future__ import annotations

from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext

from tidemill.spark_internals.java import java_context, jvm

_SOURCE = "SlowNodes.java"
_MAKER = "tidemill.Install"
_LOADERS: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


class BlockedHosts:
    """From now on a host gets no tasks for ``millis`` milliseconds if a copy of a task of its own came first
    elsewhere. JavaError or TypeError in a Spark whose scheduler is another one."""

    def __init__(self, context: SparkContext, millis: int) -> None:
        self._nodes = made(context, _MAKER).apply(java_context(context), millis)

    def lines(self) -> list[str]:
        """For each time that a host was blocked: the host, from when and until when in milliseconds since
        1970, by which stage and task, with blanks in between."""
        return str(self._nodes.told()).splitlines()


def made(context: SparkContext, name: str, *arguments: Any) -> Any:
    """A new object of a class of ``SlowNodes.java``."""
    gateway: Any = context._gateway
    loader = _LOADERS.get(context)
    if loader is None:
        loader = _LOADERS[context] = _compiled(context)
    given = gateway.new_array(jvm(context).Object, len(arguments))
    for place, argument in enumerate(arguments):
        given[place] = argument
    return loader.loadClass(name).getConstructors()[0].newInstance(given)


def _compiled(context: SparkContext) -> Any:
    """What loads the classes; Py4J takes those of one name for one."""
    compiler = jvm(context).org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java_context(context).getClass().getClassLoader())
    compiler.cook(resources.files("tidemill.spark_internals").joinpath(_SOURCE).read_text())
    return compiler.getClassLoader()
