"""The kinds of user functions as they were declared, and the class that aggregate functions derive from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


class DeclarationError(Exception):
    """A declaration that no function can be made of; raised where the module is imported."""


class AggregateFunction:
    """The base of aggregate functions; give an instance or the class to ``udaf``. ``retract`` and ``merge``
    are faces that a function has or has not: ``Retracting``, ``Merging``.

    Per row (``general``): ``accumulate(accumulator, *args)`` and ``retract(accumulator, *args)`` change
    the accumulator, or return a new one. A ROW accumulator is a list of its fields. ``retract`` is needed
    where input rows are taken back.

    Over arrays (``arrow``): ``accumulate(groups, *columns)`` and ``retract(groups, *columns)`` give one
    accumulator per group, as an array; ``groups`` holds each row's group number, 0, 0, 1, 2, 2, ...;
    ``merge(left, right)`` and ``get_value(accumulators)`` work on arrays of accumulators.
    """

    def create_accumulator(self) -> Any:
        """The accumulator of no rows."""
        raise NotImplementedError

    def accumulate(self, *args: Any) -> Any:
        raise NotImplementedError

    def get_value(self, accumulator: Any) -> Any:
        """The result."""
        raise NotImplementedError


@runtime_checkable
class Retracting(Protocol):
    """Optional face of an aggregate function: it takes rows back."""

    def retract(self, *args: Any) -> Any: ...


@runtime_checkable
class Merging(Protocol):
    """Optional face of an aggregate function, needed over arrays: two accumulators are one."""

    def merge(self, left: Any, right: Any) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UserFunction:
    """``body`` is what is called (of an aggregate: an object with its methods); ``input_types`` None:
    arguments come in the types they have."""

    name: str
    body: Any = field(repr=False)
    input_types: tuple[str, ...] | None
    vectorized: bool
    deterministic: bool = True

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
