"""The parts of an aggregate call.

A call (``AggregateSpec``) becomes an ``Aggregate``: its accumulators, and a function that computes its result
from them. Calls share accumulators by name (SUM(v) and AVG(v) keep one sum). An accumulator has the same
columns in state, in pre-aggregated input and in an epoch's delta, so one ``merge`` serves all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from tidemill.changelog.columns import Vec
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.state.layout import Layout
from tidemill.state.table import StateTable
from tidemill.user_functions.aggregates import BoundAggregate

Cell = Any
"""A column of accumulator values, one per group: ``Vec`` if the type is fixed-width, else ``pa.Array``."""
Cells = tuple[Cell, ...]
State = Mapping[str, Cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateSpec:
    """One call: ``function`` is Flink's upper-case name, ``args`` and ``filter`` are input columns, ``name``
    the output column of type ``result``; ``options`` as in ``plan.AggregateCall``. ``user`` is a user's
    function. ``since``: the first epoch whose rows the call sees, if it was added to the query later (0: from
    the start; None: state has names by older rules). Calls with different ``since`` share no state."""

    function: str
    args: tuple[str, ...]
    arg_types: tuple[pa.DataType, ...]
    result: pa.DataType
    name: str
    distinct: bool = False
    filter: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    user: BoundAggregate | None = None
    since: int | None = None

    @property
    def weight_key(self) -> WeightKey:
        return self.filter, self.values_key if self.distinct else ()

    @property
    def values_key(self) -> tuple[str, ...]:
        """The key of the call's distinct values: its arguments and ``since``."""
        return (*self.args, f"since {self.since}") if self.since else self.args

    def canonical(self, function: str) -> str:
        """A stable name for ``function`` over this call's arguments, DISTINCT and FILTER."""
        inner = ", ".join(self.args) if self.args else "*"
        text = f"{function}({'DISTINCT ' if self.distinct else ''}{inner})"
        text = text if self.filter is None else f"{text} FILTER {self.filter}"
        return f"{text} SINCE {self.since}" if self.since else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The input of an aggregation: its key fields, whether it retracts rows, and the state TTL in ms."""

    keys: tuple[pa.Field, ...]
    retracts: bool
    ttl: int = 0


@runtime_checkable
class Accumulator(Protocol):
    """``name`` identifies it within an operator; ``fields`` are its columns (names start with ``name``).
    ``delta`` and ``fold`` make their values with ``GroupedRows.reduce``, which may also give one per row."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> tuple[pa.Field, ...]: ...

    def delta(self, rows: GroupedRows) -> Cells:
        """One value per group from an epoch's rows."""
        ...

    def fold(self, rows: GroupedRows) -> Cells:
        """One value per group from pre-aggregated rows, whose columns are ``fields``."""
        ...

    def merge(self, old: Cells, new: Cells) -> Cells:
        """State and delta combined. ``old`` is NULL (value 0) where there is no state."""
        ...


@runtime_checkable
class FoldingAccumulator(Protocol):
    """An accumulator that needs its stored value to add rows, so rows are not combined before."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> tuple[pa.Field, ...]: ...

    def step(self, old: Cells, rows: GroupedRows) -> Cells:
        """One value per group after the epoch's rows. ``old`` is NULL if there is no state."""
        ...


@runtime_checkable
class TableAccumulator(Protocol):
    """An accumulator with a state table of its own; ``fields`` are what the record keeps beside it."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> tuple[pa.Field, ...]: ...

    @property
    def layout(self) -> Layout: ...

    def advance(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[Cells, Cells]:
        """Cells before and after the epoch's rows, which are added to the table. ``old``: of ``fields``."""
        ...


@runtime_checkable
class RunningAccumulator(TableAccumulator, Protocol):
    """A ``TableAccumulator`` that needs no rounds for per-record changes."""

    def run(self, old: Cells, rows: GroupedRows, table: StateTable) -> Cells:
        """Cells after each row, in group order. ``old``: one per group."""
        ...

    def take_in(self, rows: GroupedRows, table: StateTable) -> None:
        """Adds the rows to the table, after all accumulators that share it have run."""
        ...


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``result`` gives the call's output column, one value per group."""

    spec: AggregateSpec
    accumulators: tuple[Accumulator | FoldingAccumulator | TableAccumulator, ...]
    result: Callable[[State], pa.Array]


def no_nulls(vec: Vec) -> Vec:
    """``vec`` with 0 in place of NULL and no mask."""
    if vec.valid is None:
        return vec
    values = vec.values.copy()
    values[~vec.valid] = 0
    return Vec(values)


def either_valid(a: Vec, b: Vec) -> Any:
    """The validity mask of a value that is valid if ``a`` or ``b`` is."""
    return None if a.valid is None or b.valid is None else a.valid | b.valid
