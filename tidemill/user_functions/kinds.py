"""Declared user functions by kind, and the base class of aggregate functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


class DeclarationError(Exception):
    """A wrong declaration of a user function, raised when its module is imported."""


class AggregateFunction:
    """The base class of aggregate functions. Pass the class, or an instance, to ``udaf``.

    A subclass may also have ``retract`` (``Retracting``), which updating input needs, and ``merge``
    (``Merging``).

    Row by row (``general``): ``accumulate(accumulator, *args)`` and ``retract(accumulator, *args)`` change
    the accumulator, or return a new accumulator. A ROW accumulator is a list of its fields.

    Over arrays (``arrow``): ``accumulate(groups, *columns)`` and ``retract(groups, *columns)`` return an
    array with one accumulator per group. ``groups`` has the group number of each row: 0, 0, 1, 2, 2, ...
    ``merge(left, right)`` and ``get_value(accumulators)`` take arrays of accumulators.
    """

    def create_accumulator(self) -> Any:
        """The accumulator before any row."""
        raise NotImplementedError

    def accumulate(self, *args: Any) -> Any:
        raise NotImplementedError

    def get_value(self, accumulator: Any) -> Any:
        """The function's result for an accumulator."""
        raise NotImplementedError


@runtime_checkable
class Retracting(Protocol):
    """An aggregate function that can retract rows."""

    def retract(self, *args: Any) -> Any: ...


@runtime_checkable
class Merging(Protocol):
    """An aggregate function that can merge two accumulators, which ``func_type='arrow'`` needs."""

    def merge(self, left: Any, right: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserFunction:
    """``body`` is the Python function, or for an aggregate the object with the methods. If ``input_types`` is
    None, arguments keep their own types. ``version`` changes with the meaning of the function: a job refuses
    state that another version has made."""

    name: str
    body: Any = field(repr=False)
    input_types: tuple[str, ...] | None
    vectorized: bool
    deterministic: bool = True
    version: str = ""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.body(*args, **named)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserScalarFunction(UserFunction):
    result_type: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserTableFunction(UserFunction):
    result_types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserAggregateFunction(UserFunction):
    result_type: str
    accumulator_type: str
