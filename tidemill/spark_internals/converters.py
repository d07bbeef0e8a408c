"""Lets a call into the JVM go out without PySpark's test utilities.

PySpark asks its converters of NumPy values about each argument of each call. To learn whether NumPy is there,
they import the test utilities, which import pandas. This takes half a second of processor time before Spark's
core can start. With this module they are asked about NumPy's values alone.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import types

_CONVERTERS = ("NumpyArrayConverter", "NumpyScalarConverter")
"""They are not there in all versions of Spark."""


def ask_for_numpy_values_alone() -> None:
    """From here on, for all of this process; what is converted, and to what, stays the same."""
    for name in _CONVERTERS:
        converter: Any = getattr(types, name, None)
        if converter is not None and not hasattr(converter, "tidemill_asks"):
            converter.tidemill_asks = converter.can_convert
            converter.can_convert = _can_convert


def _can_convert(self: Any, value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None
        and isinstance(value, numpy.ndarray | numpy.generic)
        and bool(self.tidemill_asks(value))
    )
