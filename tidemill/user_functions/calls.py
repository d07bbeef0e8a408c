"""Bound scalar and table functions: typed, picklable, from carrier arrays to carrier arrays.

They run in Spark Python workers and in join kernels. The functions are pickled by value (see ``shipping``). A
repr has the function's name and no memory address, because plans are compared by it.
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
        """The result of the body: an array, or an iterator of one value per row."""
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
            returned = self.results(columns, rows)
            values = returned if self.vectorized else list(returned)
        if self.vectorized:
            return from_array(self.name, values, self.result, rows)
        if len(values) < rows:
            raise stopped_short(self.name)
        return from_values(self.name, values, self.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTable(BoundFunction):
    """``columns``: the type of each result column."""

    columns: RowType

    def __call__(self, columns: tuple[pa.Array, ...], rows: int) -> pa.Array:
        """A list of rows (structs) per row."""
        if self.vectorized:
            return self._from_arrays(columns, rows)
        counts: list[int] = []
        values: list[Any] = []
        with user_code(self.name):
            for returned in self.results(columns, rows):
                result_rows = () if returned is None else _iterated(self.name, returned)
                before = len(values)
                values.extend(result_rows)
                counts.append(len(values) - before)
        if len(counts) < rows:
            raise stopped_short(self.name)
        fields = [f.type for f in self.columns.fields]
        parts = self._parts(values)
        column_arrays = [from_values(self.name, part, kind) for part, kind in zip(parts, fields, strict=True)]
        return self._lists(pa.array(counts, pa.int32()), column_arrays)

    def _parts(self, values: list[Any]) -> list[list[Any]]:
        """The values of each column. With a single column, a row may be the value itself."""
        width = len(self.columns.fields)
        if width == 1:
            return [[v[0] if isinstance(v, tuple) and len(v) == 1 else v for v in values]]
        for value in values:
            if not isinstance(value, tuple | list) or len(value) != width:
                raise wrong_result(self.name, f"rows of {width} columns", repr(value))
        return [[value[i] for value in values] for i in range(width)]

    def _from_arrays(self, columns: tuple[pa.Array, ...], rows: int) -> pa.Array:
        with user_code(self.name):
            returned = self.results(columns, rows)
        if isinstance(returned, pa.ChunkedArray):
            returned = returned.combine_chunks()
        if not isinstance(returned, pa.ListArray | pa.LargeListArray):
            raise wrong_result(self.name, "a list array", f"a value of type {type(returned).__name__}")
        if len(returned) != rows:
            raise wrong_result(self.name, f"{rows} lists, one per row", f"{len(returned)}")
        kind: LogicalType = self.columns
        flat = returned.flatten()
        if len(self.columns.fields) == 1:
            arrays = [from_array(self.name, flat, self.columns.fields[0].type, len(flat))]
        else:
            arrays = from_array(self.name, flat, kind, len(flat)).flatten()
        return self._lists(returned.value_lengths().fill_null(0), arrays)

    def _lists(self, counts: pa.Array, arrays: list[pa.Array]) -> pa.Array:
        fields = list(arrow_type(self.columns))
        entries = pa.StructArray.from_arrays(arrays, fields=fields)
        ends = counts.to_numpy(zero_copy_only=False).cumsum()
        return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), entries)


def _iterated(name: str, returned: Any) -> Iterable[Any]:
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | tuple | dict):
        raise wrong_result(name, "rows to iterate over (yield, or a list)", repr(returned))
    return returned
