"""The JVM is asked once for each class."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.java_gateway import java_import
from pyspark.sql import SparkSession

from tidemill.spark_internals.class_lookups import remember_classes


def test_classes_and_methods_are_looked_up_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    remember_classes(spark.sparkContext)
    remember_classes(spark.sparkContext)
    jvm: Any = spark.sparkContext._jvm
    asked: list[str] = []
    client: Any = jvm._gateway_client
    send = client.send_command

    def counted(command: str, *more: Any, **options: Any) -> Any:
        asked.append(command)
        return send(command, *more, **options)

    monkeypatch.setattr(client, "send_command", counted)
    assert jvm.java.lang.Math.abs(-1) == 1
    view = "org.apache.spark.util.Utils"
    assert getattr(jvm, view).isWindows() is False
    asked.clear()
    assert getattr(jvm, view).isWindows() is False
    released = "m\nd\n"  # Python's collector lets go of Java objects whenever it runs
    assert len([command for command in asked if not command.startswith(released)]) == 1  # the call


def test_a_name_is_no_class_until_it_is_imported(spark: SparkSession) -> None:
    remember_classes(spark.sparkContext)
    jvm: Any = spark.sparkContext._jvm
    with pytest.raises(TypeError, match="not callable"):
        jvm.BitSet()
    java_import(jvm, "java.util.BitSet")
    assert jvm.BitSet().cardinality() == 0
