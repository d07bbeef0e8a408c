"""What a function's entry for Arrow gets and gives.

An entry chooses a kernel by the types of a call, or None if no kernel has the exact value of the Spark
text for every row. A kernel is a function of a module, or a ``partial`` over such a function, so that it can
be pickled. It gets the arguments as arrays or, where they are constant, as scalars, and gives an array, or a
scalar if all arguments are scalars. What stands under a NULL of an argument is arbitrary.

A kernel raises ``Inexact`` for a batch with values that it cannot treat exactly, errors included: the JVM
evaluates the rows then, and says what is wrong in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from tidemill.types import logical as t

Value: TypeAlias = "pa.Array | pa.Scalar"
Kernel = Callable[..., Value]


class Inexact(Exception):
    """The batch has values for which the kernel does not have the exact result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayCall:
    """As ``SparkCall``, without the texts. ``literals``: values of constant arguments, None for others."""

    arg_types: tuple[t.LogicalType, ...]
    literals: tuple[object, ...]
    result: t.LogicalType
    options: Mapping[str, str]
    zone: str


Entry = Callable[[ArrayCall], Kernel | None]


def passed_on(value: Value) -> Value:
    """The kernel that changes nothing."""
    return value


def by_value(kernel: Kernel) -> Entry:
    """The entry of a kernel that takes arguments of any types that the function takes."""
    return lambda call: kernel
