"""Bound scalar and table functions: typed, picklable, called with carrier arrays and giving carrier arrays.

They run in Spark Python workers and in join kernels. The functions themselves travel by value (see
``shipping``); a repr names what is called, not where it lies in memory, as plans are compared by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import pyarrow as pa

from tidemill.types.logical import LogicalType, RowType
from tidemill.types.physical import arrow_type
from tidemill.user_functions.failures import stopped_short, user_code, wrong_result
from tidemill.user_functions.results import from_array, from_values
from tidemill.user_functions.values import presented, to_python


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundFunction:
    """``name`` as in the query; ``body`` takes Python values, or arrays if ``vectorized``; ``version`` as it
    was declared."""

    name: str
    body: Any = field(repr=False, hash=False)
    vectorized: bool
    deterministic: bool
    arg_types: tuple[LogicalType, ...]
    version: str = ""

    def results(self, columns: tuple[pa.Array, ...], rows: int) -> Any:
        """What the body gives: an array, or an iterator of one value per row."""
        pairs = list(zip(columns, self.arg_types, strict=True))
        if self.vectorized:
            return self.body(*(presented(c, k) for c, k in pairs))
        if not pairs:
            return (self.body() for _ in repeat(None, rows))
        return map(self.body, *(to_python(c, k) for c, k in pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundScalar(BoundFunction):
    result: LogicalType

    def __call__(self, columns: tuple[pa.Array, ...], rows: int) -> pa.Array:
        """One value per row; ``columns`` are ``arg_types``' carriers. ExecutionError names the function."""
        with user_code(self.name):
            given = self.results(columns, rows)
            values = given if self.vectorized else list(given)
        if self.vectorized:
            return from_array(self.name, values, self.result, rows)
        if len(values) < rows:
            raise stopped_short(self.name)
        return from_values(self.name, values, self.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTable(BoundFunction):
    """``columns``: the type of each column it gives."""

    columns: RowType

    def __call__(self, columns: tuple[pa.Array, ...], rows: int) -> pa.Array:
        """A list of rows (structs) per row."""
        if self.vectorized:
            return self._from_arrays(columns, rows)
        counts: list[int] = []
        values: list[Any] = []
        with user_code(self.name):
            for given in self.results(columns, rows):
                found = () if given is None else _iterated(self.name, given)
                before = len(values)
                values.extend(found)
                counts.append(len(values) - before)
        if len(counts) < rows:
            raise stopped_short(self.name)
        fields = [f.type for f in self.columns.fields]
        parts = self._parts(values)
        made = [from_values(self.name, part, kind) for part, kind in zip(parts, fields, strict=True)]
        return self._lists(pa.array(counts, pa.int32()), made)

    def _parts(self, values: list[Any]) -> list[list[Any]]:
        """The values of each column; where there is one, a row may be the value itself."""
        width = len(self.columns.fields)
        if width == 1:
            return [[v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in values]]
        for value in values:
            if not isinstance(value, tuple | list) or len(value) != width:
                raise wrong_result(self.name, f"rows of {width} columns", repr(value))
        return [[value[i] for value in values] for i in range(width)]

    def _from_arrays(self, columns: tuple[pa.Array, ...], rows: int) -> pa.Array:
        with user_code(self.name):
            given = self.results(columns, rows)
        if isinstance(given, pa.ChunkedArray):
            given = given.combine_chunks()
        if not isinstance(given, pa.ListArray | pa.LargeListArray):
            raise wrong_result(self.name, "a list array", f"a value of type {type(given).__name__}")
        if len(given) != rows:
            raise wrong_result(self.name, f"{rows} lists, one per row", f"{len(given)}")
        kind: LogicalType = self.columns
        flat = given.flatten()
        if len(self.columns.fields) == 1:
            made = [from_array(self.name, flat, self.columns.fields[0].type, len(flat))]
        else:
            made = from_array(self.name, flat, kind, len(flat)).flatten()
        return self._lists(given.value_lengths().fill_null(0), made)

    def _lists(self, counts: pa.Array, made: list[pa.Array]) -> pa.Array:
        fields = list(arrow_type(self.columns))
        entries = pa.StructArray.from_arrays(made, fields=fields)
        ends = counts.to_numpy(zero_copy_only=False).cumsum()
        return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), entries)


def _iterated(name: str, given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | tuple | dict):
        raise wrong_result(name, "rows to iterate over (yield, or a list)", repr(given))
    return given
