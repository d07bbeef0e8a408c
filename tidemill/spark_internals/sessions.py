"""Settings and temporary views of a session (``org.apache.spark.sql.internal.SessionState``)."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from tidemill.spark_internals.java import java_session, jvm
from tidemill.spark_internals.versions import SETTINGS_AT_ONCE, is_on

_PLAIN = frozenset(string.ascii_letters + string.digits + ".-_/")


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """All at once: to set each is a call into the JVM."""
    if not is_on(SETTINGS_AT_ONCE):
        for key, value in settings.items():
            spark.conf.set(key, value)
        return
    view = jvm(spark.sparkContext)
    lines = (f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())
    properties = view.java.util.Properties()
    properties.load(view.java.io.StringReader("".join(lines)))
    java_session(spark).sessionState().conf().setConf(properties)


def _escaped(text: str) -> str:
    """As Java's properties are written: every character that may mean something by its number in UTF-16."""
    return "".join(c if c in _PLAIN else _numbered(c) for c in text)


def _numbered(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


class TemporaryViews:
    """Those of a session, whose catalog is asked for once."""

    def __init__(self, spark: SparkSession) -> None:
        self._catalog = java_session(spark).sessionState().catalog()

    def get(self, name: str) -> Any:
        """What Spark keeps of a view; any session of the application takes it (``put``)."""
        return self._catalog.getRawTempView(name).get()

    def put(self, name: str, view: Any) -> None:
        """The view under ``name``, in place of the one that has it."""
        self._catalog.createTempView(name, view, True)

    def clear(self) -> None:
        """Removes all of them."""
        self._catalog.clearTempTables()


def copy_of(spark: SparkSession, settings: Mapping[str, str]) -> Any:
    """A Java session like ``spark`` with ``settings`` on top. It has no views: it would keep their files."""
    made = java_session(spark).cloneSession()
    for key, value in settings.items():
        made.conf().set(key, value)
    made.sessionState().catalog().clearTempTables()
    return made
