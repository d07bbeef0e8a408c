"""Columns of run files in fewer bytes, which are still read where they lie.

A run of many rows is packed when it is written, if that makes it much smaller:

- integers have the narrowest type that holds all values of the run, one bit for 0 and 1;
- integers that nothing compares, and that are too large for it, are steps from a base;
- text that repeats is a dictionary, with a code of one, two or four bytes in each row;
- the time that rows are ordered by is there once for all neighbours that share it (``state.due_times``).

    counts  1, 1, 3 (8 bytes each)           ->  1, 1, 3 (1 byte each), a field that says "int64"
    slices  12:01, 12:00, 12:03 (8 bytes)    ->  1, 0, 3 (1 byte each), a field that says "12:00, 1 minute"
    days    2026-11-01, 2026-11-01, ...      ->  0, 0, ... and the texts, once each

Lookups compare and take packed values, and widen only the rows that they take, so the cost of an epoch
still follows the keys that it touches. Merges widen whole runs. Hashes and other columns of a run itself are
never packed, but for $due and weights.

The file alone says what is packed, by field metadata and types: a file without either is plain.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import gcd

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Vec, dtype_of, is_fixed, single, to_arrow, vector
from tidemill.state.arrow_names import arrow_named

_KIND = b"tidemill.unpacked"
"""Metadata of a field of narrower integers: the type that its values have."""
_BASE, _STEP = b"tidemill.base", b"tidemill.step"
"""Metadata of a field of steps: a value is the base and so many steps."""
_NARROW = (pa.int8(), pa.int16(), pa.int32())
_BLOCKS, _BLOCK = 32, 32
"""A sample of rows: blocks of neighbours, as all values of a key are neighbours."""
_REPEATS = 4
"""A dictionary pays if each of its texts is there so many times."""


@dataclass(frozen=True, slots=True)
class _Form:
    """How a column is stored: its type, and what its integers count."""

    type: pa.DataType
    base: int = 0
    step: int = 1

    @property
    def counts_steps(self) -> bool:
        return (self.base, self.step) != (0, 1)


def packed(
    table: pa.Table, plain: Collection[str], gain: float, *, payload: Collection[str] = (), order: str = ""
) -> pa.Table:
    """``table``, of one chunk, with its columns packed but for those named ``plain``. If it would not become
    smaller by the factor ``gain``, about, it stays as it is. ``payload``: the columns that nothing compares.
    ``order``: an integer column that rows are in the order of."""
    columns = {name: single(table.column(name)) for name in table.column_names}
    forms = {}
    for name, column in columns.items():
        if name == order:
            forms[name] = _ordered_form(column)
        else:
            forms[name] = _Form(column.type) if name in plain else _form(column, name in payload)
    bits = sum(_bits(forms[name].type, column) for name, column in columns.items())
    if bits * gain >= table.nbytes * 8:
        return table
    stored = {name: _as(forms[name], column) for name, column in columns.items()}
    fields = [_described(field, forms[field.name], stored[field.name].type) for field in table.schema]
    return pa.table(list(stored.values()), schema=pa.schema(fields))


def unpacked_type(field: pa.Field) -> pa.DataType:
    """The type of the column before it was packed."""
    if pa.types.is_dictionary(field.type) or pa.types.is_run_end_encoded(field.type):
        return field.type.value_type
    kind = (field.metadata or {}).get(_KIND)
    return field.type if kind is None else arrow_named(kind.decode())


def unpacked(table: pa.Table) -> pa.Table:
    """The same rows without packed columns."""
    fields = [pa.field(f.name, unpacked_type(f)) for f in table.schema]
    if all(f.type == stored.type for f, stored in zip(fields, table.schema, strict=True)):
        return table
    columns = [
        _widened(packed_field, c, f.type)
        for packed_field, f, c in zip(table.schema, fields, table.columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def unpacked_bytes(table: pa.Table) -> int:
    """About the bytes that ``unpacked`` has. Cost: a pass over the codes of dictionaries."""
    size = 0
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = unpacked_type(field)
        if kind == field.type:
            size += column.nbytes
        elif pa.types.is_integer(kind):
            size += len(column) * kind.bit_width // 8
        else:
            size += sum(_text_bytes(chunk) for chunk in column.chunks)
    return size


def taken(field: pa.Field, column: pa.Array, rows: Ints) -> pa.Array:
    """The ``rows`` of a column that may be packed, which ``field`` describes, unpacked."""
    kind = unpacked_type(field)
    if is_fixed(kind):
        return to_arrow(taken_vec(field, column, rows), kind)
    values = column.take(pa.array(rows))
    return values if values.type == kind else values.cast(kind)


def taken_vec(field: pa.Field, column: pa.Array, rows: Ints) -> Vec:
    """``taken`` of a column of fixed width. Of bits no others are unpacked."""
    is_bits = pa.types.is_boolean(column.type)
    part = vector(column.take(pa.array(rows))) if is_bits else vector(column).take(rows)
    base, step = _steps(field)
    values = part.values.astype(dtype_of(unpacked_type(field)) or part.values.dtype, copy=False)
    if (base, step) != (0, 1):
        values *= step
        values += base
    return Vec(values, part.valid)


def _widened(field: pa.Field, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    column = column.cast(kind)
    base, step = _steps(field)
    return column if (base, step) == (0, 1) else pc.add(pc.multiply(column, step), base)


def _steps(field: pa.Field) -> tuple[int, int]:
    """The base and the step of a column of integers."""
    metadata = field.metadata or {}
    return int(metadata.get(_BASE, 0)), int(metadata.get(_STEP, 1))


def _form(column: pa.Array, is_payload: bool) -> _Form:
    """A dictionary's codes have one of ``_NARROW``."""
    kind = column.type
    if pa.types.is_signed_integer(kind):
        return _integer_form(column, is_payload)
    if (pa.types.is_string(kind) or pa.types.is_binary(kind)) and _repeats(column):
        return _Form(pa.dictionary(pa.int16(), kind))
    return _Form(kind)


def _ordered_form(column: pa.Array) -> _Form:
    values = vector(column).values
    changes = int(np.count_nonzero(values[1:] != values[:-1]))
    once = pa.run_end_encoded(pa.int32(), column.type)
    return _Form(once if changes * _REPEATS < len(values) else column.type)


def _integer_form(column: pa.Array, is_payload: bool) -> _Form:
    bounds = pc.min_max(column)
    least, most = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
    narrow = _narrow(least, most, column.type)
    if narrow != pa.int64() or not is_payload:
        return _Form(narrow)
    step = _step(column, least, most)
    narrow = _narrow(0, (most - least) // step, column.type)
    return _Form(narrow) if narrow == pa.int64() else _Form(narrow, least, step)


def _narrow(least: int, most: int, kind: pa.DataType) -> pa.DataType:
    """The narrowest type of integers from ``least`` to ``most``, at most ``kind``."""
    if least >= 0 and most <= 1:
        return pa.bool_()
    for narrow in _NARROW:
        if narrow.bit_width >= kind.bit_width:
            break
        limit = 1 << (narrow.bit_width - 1)
        if -limit <= least and most < limit:
            return narrow
    return kind


def _step(column: pa.Array, least: int, most: int) -> int:
    """A number that divides the distance of each value from ``least``. A sample proposes it; if it divides
    not all distances, it is 1."""
    if most - least >= 1 << 62:
        return 1
    values = vector(column.drop_null()).values
    step = gcd(most - least, int(np.gcd.reduce(values[_sample(len(values))] - least)))
    return step if step > 1 and not ((values - least) % step).any() else 1


def _bits(kind: pa.DataType, column: pa.Array) -> int:
    """About what ``column`` takes as ``kind``; of a dictionary the codes, of a column in order nothing."""
    if kind == column.type:
        return int(column.nbytes) * 8
    if pa.types.is_run_end_encoded(kind):
        return 0
    width: int = kind.index_type.bit_width if pa.types.is_dictionary(kind) else kind.bit_width
    return len(column) * width


def _as(form: _Form, column: pa.Array) -> pa.Array:
    if form.type == column.type:
        return column
    if pa.types.is_run_end_encoded(form.type):
        return pc.run_end_encode(column, run_end_type=form.type.run_end_type)
    if pa.types.is_dictionary(form.type):
        return _coded(column)
    if form.counts_steps:
        column = pc.divide(pc.subtract(column, form.base), form.step)
    return column.cast(form.type, safe=False)


def _described(field: pa.Field, form: _Form, stored: pa.DataType) -> pa.Field:
    metadata = {}
    if pa.types.is_integer(field.type) and stored != field.type and not pa.types.is_run_end_encoded(stored):
        metadata[_KIND] = str(field.type).encode()
        if form.counts_steps:
            metadata |= {_BASE: str(form.base).encode(), _STEP: str(form.step).encode()}
    return pa.field(field.name, stored, metadata=metadata or None)


def _repeats(column: pa.Array) -> bool:
    """Whether a sample has most texts twice: a look at little, as most texts that are keys are there once."""
    if len(column) <= _BLOCKS * _BLOCK:
        return True
    sample = column.take(pa.array(_sample(len(column))))
    return bool(pc.count_distinct(sample, mode="all").as_py() * 2 <= len(sample))


def _sample(rows: int) -> Ints:
    """The numbers of some rows, or of all if they are few."""
    if rows <= _BLOCKS * _BLOCK:
        return np.arange(rows)
    starts = np.linspace(0, rows - _BLOCK, _BLOCKS).astype(np.int64)
    places: Ints = (starts[:, None] + np.arange(_BLOCK)).ravel()
    return places


def _coded(column: pa.Array) -> pa.Array:
    coded = column.dictionary_encode()
    texts = len(coded.dictionary)
    if texts * _REPEATS > len(column):
        return column
    codes = coded.indices
    for kind in _NARROW[:2]:
        if texts <= 1 << (kind.bit_width - 1):
            codes = codes.cast(kind, safe=False)
            break
    return pa.DictionaryArray.from_arrays(codes, coded.dictionary)


def _text_bytes(column: pa.DictionaryArray) -> int:
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return (pc.sum(lengths).as_py() or 0) + 4 * len(column)
