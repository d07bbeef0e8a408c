"""A join's residual condition over candidate pairs, evaluated by Arrow compute kernels.

The tree is plain data (picklable, printable: it is part of the join's fingerprint). Three-valued
logic is Arrow's Kleene logic; a pair matches where the condition is TRUE. Anything that concerns one
side only was computed by Spark before the exchange and is a column here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Mask, single, vector
from tidemill.changelog.values import comparable, equal, not_distinct, same_at
from tidemill.user_functions.calls import BoundScalar


class PairColumns(Protocol):
    """Both sides' columns, one row per pair."""

    def __len__(self) -> int: ...

    def column(self, name: str) -> pa.Array: ...


class Term(Protocol):
    """A value per pair, as an Arrow array or scalar."""

    def of(self, pairs: PairColumns) -> Any: ...


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    name: str

    def of(self, pairs: PairColumns) -> Any:
        return pairs.column(self.name)


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    value: object
    type: pa.DataType

    def of(self, pairs: PairColumns) -> Any:
        return pa.scalar(self.value, self.type)


@dataclass(frozen=True, slots=True)
class ComputedTerm:
    """``operation`` is a name of OPERATIONS."""

    operation: str
    operands: tuple[Term, ...]

    def of(self, pairs: PairColumns) -> Any:
        return OPERATIONS[self.operation](*(o.of(pairs) for o in self.operands))


@dataclass(frozen=True, slots=True)
class CastTerm:
    """A widening cast: no value is lost, none can fail."""

    operand: Term
    type: pa.DataType

    def of(self, pairs: PairColumns) -> Any:
        return pc.cast(self.operand.of(pairs), self.type)


@dataclass(frozen=True, slots=True)
class ElapsedTerm:
    """The number of whole units of ``micros`` microseconds from the first time to the second, an INT."""

    operands: tuple[Term, Term]
    micros: int

    def of(self, pairs: PairColumns) -> Any:
        first, second = (pc.cast(o.of(pairs), pa.int64()) for o in self.operands)
        units = pc.divide(pc.subtract(second, first), pa.scalar(self.micros))
        return pc.cast(units, pa.int32(), safe=False)


@dataclass(frozen=True, slots=True)
class UserTerm:
    """A user's function over columns of both sides."""

    function: BoundScalar
    operands: tuple[Term, ...]

    def of(self, pairs: PairColumns) -> Any:
        return self.function(tuple(_per_pair(o.of(pairs), len(pairs)) for o in self.operands), len(pairs))


def _per_pair(value: Any, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else single(value)


@dataclass(frozen=True, slots=True)
class Residual:
    """The condition; ``matches`` gives one boolean per pair."""

    condition: Term

    def matches(self, pairs: PairColumns) -> Mask:
        verdict = self.condition.of(pairs)
        if isinstance(verdict, pa.Scalar):
            verdict = pa.repeat(verdict, len(pairs))
        return vector(pc.fill_null(single(verdict), False)).values


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    rows = np.arange(len(left))
    return pa.array(same_at(single(left), rows, single(right), rows))


def _if(condition: Any, value: Any, other: Any) -> Any:
    return pc.if_else(pc.fill_null(condition, False), value, other)


def _case(*parts: Any) -> Any:
    """Condition, value, condition, value, ..., else."""
    chosen = parts[-1]
    for condition, value in zip(parts[-3::-2], parts[-2::-2], strict=True):
        chosen = _if(condition, value, chosen)
    return chosen


def _all(*conditions: Any) -> Any:
    return reduce(pc.and_kleene, conditions)


def _any(*conditions: Any) -> Any:
    return reduce(pc.or_kleene, conditions)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "=": equal,
    "<>": lambda a, b: pc.invert(equal(a, b)),
    "<": lambda a, b: pc.less(*comparable(a, b)),
    "<=": lambda a, b: pc.less_equal(*comparable(a, b)),
    ">": lambda a, b: pc.greater(*comparable(a, b)),
    ">=": lambda a, b: pc.greater_equal(*comparable(a, b)),
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
    "ABS": pc.abs,
    "UNARY -": pc.negate,
    "CASE": _case,
    "IF": _if,
    "COALESCE": pc.coalesce,
    "IFNULL": pc.coalesce,
    "AND": _all,
    "OR": _any,
    "NOT": pc.invert,
    "IS NULL": pc.is_null,
    "IS NOT NULL": pc.is_valid,
    "IS NOT DISTINCT FROM": not_distinct,
    "$SAME": _same,
    "IS DISTINCT FROM": lambda a, b: pc.invert(not_distinct(a, b)),
    "IS TRUE": lambda a: pc.fill_null(a, False),
    "IS NOT TRUE": lambda a: pc.invert(pc.fill_null(a, False)),
    "IS FALSE": lambda a: pc.invert(pc.fill_null(a, True)),
    "IS NOT FALSE": lambda a: pc.fill_null(a, True),
}
