"""Java classes and their static methods are looked up once for each name.

PySpark asks the JVM for a class by its short name whenever it calls into it, dozens of times for each frame;
the JVM then tries every package that was imported, each against every jar. The answers never change, so the
application's view of the JVM keeps them.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView
from pyspark import SparkContext

from tidemill.spark_internals.java import jvm
from tidemill.spark_internals.versions import CLASS_LOOKUPS, is_on


class _Class(JavaClass):  # type: ignore[misc]  # Py4J has no types
    """Fields are asked for each time: they change."""

    def __getattr__(self, name: str) -> Any:
        attribute = super().__getattr__(name)
        if isinstance(attribute, JavaMember):
            self.__dict__[name] = attribute
        return attribute


class _View(JVMView):  # type: ignore[misc]  # Py4J has no types
    """A name of no class yet is asked for again: it may be imported meanwhile."""

    def __getattr__(self, name: str) -> Any:
        attribute = super().__getattr__(name)
        if type(attribute) is JavaClass:
            attribute.__class__ = _Class
            self.__dict__[name] = attribute
        return attribute


def remember_classes(context: SparkContext) -> None:
    """From now on, for whoever uses the context."""
    if not is_on(CLASS_LOOKUPS):
        return
    view = jvm(context)
    if type(view) is JVMView:
        view.__class__ = _View
