"""Typed expressions over Arrow batches: trees of kernels, evaluated column by column.

A tree shares equal parts: a node that stands in several places is one object, and is evaluated once per
batch. Only columns that somebody asks for are filtered. A CASE whose branches cannot be evaluated for all
rows evaluates each branch for its own rows, as SQL does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import Inexact, Kernel, Value

Mask = npt.NDArray[np.bool_]
_MICROSECONDS = 1000
_INSTANT = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of the input. ``type``: that kernels expect; None: nobody looks at it here."""

    name: str
    type: pa.DataType | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    value: pa.Scalar


@dataclass(frozen=True, slots=True, eq=False)
class EpochTime:
    """The processing time of the epoch, an instant."""


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    kernel: Kernel
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """CASE: of ``values``, which are one more than the ``conditions``, the first whose condition is TRUE."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A user's function of the arguments' arrays, one value per row, and of the number of rows. It is not
    called without rows."""

    function: Callable[[tuple[pa.Array, ...], int], pa.Array]
    args: tuple[Node, ...]
    type: pa.DataType


Node = Column | Constant | EpochTime | Applied | Chosen | Called


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A filter, then one expression per column. ``types``: of the columns, without added ones."""

    condition: Node | None
    columns: tuple[Node, ...]
    types: tuple[pa.DataType, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The input columns that the expressions need, each once."""
        roots = (*self.columns, *(() if self.condition is None else (self.condition,)))
        return tuple(dict.fromkeys(n.name for r in roots for n in walk(r) if isinstance(n, Column)))

    def with_columns(self, names: Iterable[str]) -> Projection:
        """Passes on these input columns, too."""
        return replace(self, columns=(*self.columns, *map(Column, names)))

    def filtered(self, rows: Rows) -> Rows:
        """The rows for which the condition is TRUE."""
        return rows if self.condition is None else rows.where(_truth(rows.array(self.condition)))

    def arrays(self, rows: Rows) -> list[pa.Array]:
        """The columns of the ``rows`` that ``filtered`` gave."""
        arrays = list(map(rows.array, self.columns))
        for column, array, kind in zip(self.columns, arrays, self.types, strict=False):
            if array.type != kind and not isinstance(column, Column):
                raise TypeError(f"a kernel gives {array.type}, not {kind}")
        return arrays


def walk(node: Node) -> Iterator[Node]:
    """``node`` and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Chosen):
        return (*node.conditions, *node.values)
    return node.args if isinstance(node, Applied | Called) else ()


@dataclass(slots=True)
class Rows:
    """``count`` rows with named ``columns``, or the rows ``chosen`` of ``whole``. ``time``: of the epoch, in
    ms."""

    count: int
    columns: Mapping[str, pa.Array] = field(default_factory=dict)
    whole: Rows | None = None
    chosen: pa.Array | None = None
    time: int = 0
    _known: dict[Node, Value] = field(default_factory=dict)

    def where(self, mask: Mask) -> Rows:
        count = int(np.count_nonzero(mask))
        if count == self.count:
            return self
        return Rows(count, whole=self, chosen=pa.array(mask), time=self.time)

    def array(self, node: Node) -> pa.Array:
        """The values of ``node``, one per row."""
        value = self._value(node)
        return pa.repeat(value, self.count) if isinstance(value, pa.Scalar) else value

    def column(self, name: str) -> pa.Array:
        """The values of an input column."""
        if self.whole is None:
            return self.columns[name]
        return self.whole.column(name).filter(self.chosen)

    def _value(self, node: Node) -> Value:
        if node not in self._known:
            whole_value = None if self.whole is None else self.whole._known.get(node)
            chosen = isinstance(whole_value, pa.Array)
            self._known[node] = pc.filter(whole_value, self.chosen) if chosen else self._evaluated(node)
        return self._known[node]

    def _evaluated(self, node: Node) -> Value:
        match node:
            case Column():
                return typed(node.type, self.column(node.name))
            case Constant():
                return node.value
            case EpochTime():
                return pa.scalar(self.time * _MICROSECONDS, _INSTANT)
            case Applied():
                return node.kernel(*map(self._value, node.args))
            case Called():
                if self.count == 0:
                    return pa.nulls(0, node.type)
                return node.function(tuple(map(self.array, node.args)), self.count)
            case Chosen():
                try:
                    return self._case(node)
                except Inexact:
                    return self._case_by_rows(node)

    def _case(self, node: Chosen) -> pa.Array:
        conditions = pc.make_struct(*map(self.array, node.conditions))
        return pc.case_when(conditions, *map(self._value, node.values))

    def _case_by_rows(self, node: Chosen) -> pa.Array:
        """Each branch for the rows that choose it, in the order of the rows."""
        undecided, positions = self, np.arange(self.count)
        values: list[pa.Array] = []
        row_numbers: list[npt.NDArray[np.int64]] = []
        for condition, value in zip(node.conditions, node.values, strict=False):
            mask = _truth(undecided.array(condition))
            values.append(undecided.where(mask).array(value))
            row_numbers.append(positions[mask])
            undecided, positions = undecided.where(~mask), positions[~mask]
        values.append(undecided.array(node.values[-1]))
        row_numbers.append(positions)
        return pa.concat_arrays(values).take(pa.array(np.argsort(np.concatenate(row_numbers))))


def typed(kind: pa.DataType | None, array: pa.Array) -> pa.Array:
    """``array`` as ``kind``; sources may give times in other units. What is nested stays as it is."""
    if kind is None or array.type == kind or pa.types.is_nested(kind):
        return array
    return array.cast(kind)


def field_of(index: int, kind: pa.DataType, rows: pa.Array) -> pa.Array:
    """A field of ROW values."""
    return typed(kind, pc.struct_field(rows, [index]))


def _truth(condition: pa.Array) -> Mask:
    """Where it is TRUE, not NULL."""
    mask: Mask = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return mask
