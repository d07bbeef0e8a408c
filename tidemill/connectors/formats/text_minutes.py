"""Parses columns of timestamp texts whose neighbours share a minute.

Rows of a stream have growing times, so neighbours begin alike: ``2020-01-01 00:00``. This module parses such
a prefix once for all its rows. It computes the seconds, ``:30`` or ``:30.125``, by arithmetic on the last
eight bytes of all texts at once. Cost: some twenty array operations, a fraction of the cost of parsing each
text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints

_MINUTE = len("2020-01-01 00:00")
_WORD = 8
_PIECE = 1 << 14
"""Rows of a chunk whose words fit a processor's cache."""
_NEIGHBOURS = 8
"""The least number of rows per minute, on average, for which this module is used."""
_START = datetime(1970, 1, 1)
_MICROSECOND = _START.resolution


@dataclass(frozen=True, slots=True)
class _Tail:
    """The text behind the minute. ``shape`` describes the last eight bytes: 0 is a digit, ? is ignored, other
    bytes stand for themselves. ``seconds`` and ``thousandths``: where these digits begin, -1 for none."""

    zero: str
    shape: bytes
    seconds: int
    thousandths: int = -1

    def word(self, selected: bytes, replacement: int | None = None) -> np.uint64:
        """A word with ``replacement`` (or the shape's own byte) for each of the ``selected`` characters, else
        0."""
        masked = ((c if replacement is None else replacement) if c in selected else 0 for c in self.shape)
        return np.uint64(int.from_bytes(bytes(masked), "little"))


_TAILS = {
    _MINUTE + len(tail.zero): tail
    for tail in (_Tail(":00", b"?????:00", 6), _Tail(":00.000", b"?:00.000", 2, 5))
}


def by_minutes(values: pa.Array, parse: Callable[[str], datetime]) -> pa.Array | None:
    """Timestamps in microseconds, if all texts have whole seconds, or all have milliseconds. None if any text
    is NULL or has another shape, or if minutes change often. ``parse`` reads one text with seconds;
    ValueError if it is no timestamp."""
    length = _length(values)
    tail = _TAILS.get(length)
    if tail is None:
        return None
    minute_changes = _changes(_words(values, length, 0)) | _changes(_words(values, length, _WORD))
    minute_starts = np.append(0, np.flatnonzero(minute_changes) + 1)
    if len(minute_starts) * _NEIGHBOURS > len(values):
        return None
    minutes = _minutes(values, minute_starts, tail, parse)
    seconds = _rest(_words(values, length, length - _WORD), tail)
    if minutes is None or seconds is None:
        return None
    seconds += np.repeat(minutes, np.diff(minute_starts, append=len(values)))
    return pa.array(seconds).view(pa.timestamp("us"))


def _length(values: pa.Array) -> int:
    """The common length of all texts; 0 if there are NULLs or the lengths differ."""
    if len(values) == 0 or values.null_count or values.type != pa.string():
        return 0
    lengths = np.diff(_offsets(values))
    return int(lengths[0]) if (lengths == lengths[0]).all() else 0


def _offsets(values: pa.Array) -> npt.NDArray[np.int32]:
    first = values.offset
    return np.frombuffer(values.buffers()[1], np.int32)[first : first + len(values) + 1]


def _words(values: pa.Array, length: int, place: int) -> Hashes:
    """The eight bytes at the offset ``place`` of each text, as one number."""
    start = int(_offsets(values)[0]) + place
    return np.ndarray((len(values),), np.dtype("<u8"), values.buffers()[2], start, (length,))


def _changes(words: Hashes) -> npt.NDArray[np.bool_]:
    """Whether each word differs from the one before it."""
    changes: npt.NDArray[np.bool_] = words[1:] != words[:-1]
    return changes


def _minutes(values: pa.Array, rows: Ints, tail: _Tail, parse: Callable[[str], datetime]) -> Ints | None:
    """The minutes of the texts in ``rows``, in microseconds; None if a text is no timestamp."""
    texts = [text[:_MINUTE] for text in values.take(pa.array(rows)).to_pylist()]
    parsed: dict[str, int] = {}
    for text in texts:
        if text not in parsed:
            try:
                parsed[text] = (parse(text + tail.zero) - _START) // _MICROSECOND
            except ValueError:
                return None
    return np.array([parsed[text] for text in texts], np.int64)


def _rest(words: Hashes, tail: _Tail) -> Ints | None:
    """The seconds behind the minutes, in microseconds; None if a text does not have the shape."""
    seconds = np.empty(len(words), np.int64)
    for first in range(0, len(words), _PIECE):
        chunk = slice(first, first + _PIECE)
        chunk_seconds = _piece(np.ascontiguousarray(words[chunk]), tail)
        if chunk_seconds is None:
            return None
        seconds[chunk] = chunk_seconds
    return seconds


def _piece(words: Hashes, tail: _Tail) -> Ints | None:
    separator_mask, digit_mask = tail.word(b":.", 0xFF), tail.word(b"0", 0xFF)
    if ((words & separator_mask) != tail.word(b":.")).any():
        return None
    digit_values = (words & digit_mask) ^ tail.word(b"0")
    # A byte above 9 reaches its highest bit when 118 is added; one that had it before keeps it.
    if (((digit_values + tail.word(b"0", 0x76)) | digit_values) & tail.word(b"0", 0x80)).any():
        return None
    pairs = digit_values * np.uint64(10) + (digit_values >> np.uint64(8))
    seconds = _byte(pairs, tail.seconds)
    if (seconds > 59).any():
        return None
    if tail.thousandths < 0:
        return seconds * 1_000_000
    thousandths = _byte(pairs, tail.thousandths) * 10 + _byte(digit_values, tail.thousandths + 2)
    return (seconds * 1000 + thousandths) * 1000


def _byte(words: Hashes, place: int) -> Ints:
    values: Ints = ((words >> np.uint64(8 * place)) & np.uint64(0xFF)).view(np.int64)
    return values
