"""PySpark's converters of NumPy values are asked about NumPy's values alone, and still convert them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession, types

from tidemill.spark_internals.converters import ask_for_numpy_values_alone


@pytest.fixture
def converters() -> list[Any]:
    ask_for_numpy_values_alone()
    ask_for_numpy_values_alone()
    return [types.NumpyArrayConverter(), types.NumpyScalarConverter()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1, 2]), [True, False]),
        (np.array([[1], [2]]), [False, False]),
        (np.int32(1), [False, True]),
        (1, [False, False]),
        ([1], [False, False]),
        (None, [False, False]),
    ],
)
def test_what_they_take(converters: list[Any], value: object, expected: list[bool]) -> None:
    assert [converter.can_convert(value) for converter in converters] == expected


@pytest.mark.usefixtures("converters")
def test_values_reach_java(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    assert jvm.java.util.Arrays.toString(np.array([1, 2])) == "[1, 2]"
    assert jvm.java.lang.Math.abs(np.int32(-3)) == 3


def test_no_test_utilities_are_imported() -> None:
    code = """
import sys
from pyspark.sql import types
from tidemill.spark_internals.converters import ask_for_numpy_values_alone
ask_for_numpy_values_alone()
print(types.NumpyArrayConverter().can_convert(True), types.NumpyScalarConverter().can_convert("a"))
print("pandas" in sys.modules, "pyspark.testing" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\nFalse False\n"
