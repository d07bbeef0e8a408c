"""Kernels of text functions, as far as Arrow and NumPy have Java's results.

Positions and lengths count code points. Case changes are exact for ASCII only.
"""

from __future__ import annotations

from functools import partial
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import ArrayCall, Entry, Inexact, Kernel, Value, passed_on
from tidemill.functions.arrays.buffers import text_bytes
from tidemill.functions.text.numbers import NO_EXPONENT
from tidemill.types import logical as t


def lower(text: pa.Array) -> pa.Array:
    return pc.ascii_lower(_ascii(text))


def upper(text: pa.Array) -> pa.Array:
    return pc.ascii_upper(_ascii(text))


def length(text: pa.Array) -> pa.Array:
    return pc.utf8_length(text)


def concatenated(*values: Value) -> Value:
    """NULL if a part is NULL."""
    return pc.binary_join_element_wise(*values, "")


def trim(side: str | None = None) -> Entry:
    """TRIM of blanks or of the characters of a constant. ``side`` None: an option says which."""

    def entry(call: ArrayCall) -> Kernel | None:
        characters = call.literals[1] if len(call.literals) > 1 else " "
        if not isinstance(characters, str) or not characters:
            return None
        return partial(_trimmed, side or call.options.get("MODE", "BOTH"), characters)

    return entry


def joined(separator: Value, *parts: Value) -> Value:
    """CONCAT_WS: NULL parts are left out; NULL if the separator is."""
    return pc.binary_join_element_wise(*parts, separator, null_handling="skip")


def reversed_text(text: Value) -> Value:
    return pc.utf8_reverse(text)


def right(call: ArrayCall) -> Kernel | None:
    count = call.literals[1]
    return partial(_end, count) if _is_count(count) else None


def repeat(call: ArrayCall) -> Kernel | None:
    """REPEAT, a few times."""
    count = call.literals[1]
    return partial(_repeated, count) if _is_few(count) else None


def pad(side: str) -> Entry:
    """LPAD and RPAD (``side``: left, right) to a constant length, a short one, with a constant character."""

    def entry(call: ArrayCall) -> Kernel | None:
        count, character = call.literals[1:]
        is_one = isinstance(character, str) and len(character) == 1 and character.isascii()
        return partial(_padded, side, count, str(character)) if is_one and _is_few(count) else None

    return entry


def position(needle: int) -> Entry:
    """POSITION, LOCATE and INSTR of a constant text, the argument ``needle``, from the beginning."""

    def entry(call: ArrayCall) -> Kernel | None:
        wanted = call.literals[needle]
        plain = len(call.literals) == 2 and isinstance(wanted, str)
        return partial(_position, str(wanted), 1 - needle) if plain else None

    return entry


def substring(call: ArrayCall) -> Kernel | None:
    """SUBSTRING from a constant place, of a constant length. Places count from 1; 0 is the first, too."""
    start, *rest = call.literals[1:]
    stop = rest[0] if rest else t.MAX_LENGTH
    return _slice(max(start - 1, 0), stop) if _is_count(start) and _is_count(stop) else None


def left(call: ArrayCall) -> Kernel | None:
    count = call.literals[1]
    return _slice(0, count) if _is_count(count) else None


def replace(call: ArrayCall) -> Kernel | None:
    """REPLACE of a constant text that is not empty by a constant text."""
    search, new = call.literals[1:]
    if not isinstance(search, str) or not isinstance(new, str) or not search:
        return None
    return partial(_replaced, search, new)


def split_index(call: ArrayCall) -> Kernel | None:
    """The part at a constant index of a text that an ASCII character separates."""
    separator, index = call.literals[1:]
    is_one_character = isinstance(separator, str) and len(separator) == 1 and separator.isascii()
    return partial(_part, str(separator), index) if is_one_character and _is_count(index) else None


def cast(source: t.LogicalType, target: t.LogicalType) -> Kernel | None:
    """CAST to a VARCHAR that has room for all values; of whole numbers and decimals their digits."""
    if not isinstance(target, t.VarCharType):
        return None
    if isinstance(source, t.CHARACTER_TYPES) and source.length <= target.length:
        return passed_on
    plain = isinstance(source, t.DecimalType) and source.scale <= NO_EXPONENT
    exact = (plain or isinstance(source, t.INTEGER_TYPES)) and target.length == t.MAX_LENGTH
    return partial(pc.cast, target_type=pa.string()) if exact else None


_FEW = 1_000
_PADS: dict[str, Kernel] = {"left": pc.utf8_lpad, "right": pc.utf8_rpad}
_TRIMS: dict[str, Kernel] = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}


def _is_count(literal: object) -> TypeGuard[int]:
    return isinstance(literal, int) and not isinstance(literal, bool) and literal >= 0


def _is_few(literal: object) -> TypeGuard[int]:
    return _is_count(literal) and literal <= _FEW


def _end(count: int, text: Value, *_: Value) -> Value:
    return pc.utf8_slice_codeunits(text, -count, None) if count else pc.utf8_slice_codeunits(text, 0, 0)


def _repeated(count: int, text: Value, *_: Value) -> Value:
    return pc.binary_repeat(text, count)


def _padded(side: str, count: int, character: str, text: pa.Array, *_: Value) -> pa.Array:
    """What is longer is cut. Lengths are Java's, which are Arrow's for ASCII."""
    padded = _PADS[side](_ascii(text), count, character)
    return pc.utf8_slice_codeunits(padded, 0, count)


def _position(needle: str, place: int, *values: Value) -> Value:
    """Counts from 1; 0 if the text does not have it."""
    return pc.add(pc.find_substring(_ascii(values[place]), needle), pa.scalar(1, pa.int32()))


def _slice(start: int, count: int) -> Kernel:
    return partial(_sliced, start, start + count)


def _trimmed(side: str, characters: str, text: pa.Array, *_: Value) -> pa.Array:
    return _TRIMS[side](text, characters)


def _replaced(search: str, new: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.replace_substring(text, search, new)


def _sliced(start: int, stop: int, text: Value, *_: Value) -> Value:
    return pc.utf8_slice_codeunits(text, start, stop)


def _ascii(text: pa.Array) -> pa.Array:
    """``text``. Raises Inexact unless all of it is ASCII."""
    offsets, data = text_bytes(text)
    if (data[offsets[0] : offsets[-1]] & 0x80).any():
        raise Inexact
    return text


def _part(separator: str, index: int, text: pa.Array, *_: Value) -> pa.Array:
    """An empty text has no parts. All parts are cut out by one take of Arrow:

    the parts 1 of ``a/b`` and ``c/d`` are every second of the texts ``b``, ``c/``, ``d``, whose offsets point
    into the same bytes.
    """
    offsets, data = text_bytes(text)
    if len(text) == 0:
        return text
    first = int(offsets[0])
    marks = np.flatnonzero(data[first : offsets[-1]] == ord(separator)) + first
    before = np.searchsorted(marks, offsets)
    count, missing = np.diff(before), np.diff(offsets) == 0
    missing |= count < index
    padded = np.append(marks, 0)
    ends = np.where(count > index, padded[np.minimum(before[:-1] + index, len(marks))], offsets[1:])
    starts = offsets[:-1]
    if index > 0:
        starts = padded[np.minimum(before[:-1] + index - 1, len(marks))] + 1
    edges = np.stack([np.where(missing, offsets[:-1], starts), np.where(missing, offsets[:-1], ends)], axis=1)
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), text.buffers()[2]]
    pieces = pa.Array.from_buffers(pa.string(), 2 * len(text) - 1, buffers)
    if text.null_count:
        missing |= pc.is_null(text).to_numpy(zero_copy_only=False)
    return pieces.take(pa.array(np.arange(0, 2 * len(text), 2), mask=missing))
