"""What a Spark application is called."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark import SparkContext

_IDS: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()


def application_id(context: SparkContext) -> str:
    """Asked for once: it is two calls into the JVM, and what is kept for an application is kept by it."""
    known = _IDS.get(context)
    if known is None:
        known = _IDS[context] = context.applicationId
    return known
