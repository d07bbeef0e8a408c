"""Rows in the server's own encodings, taken apart column by column for all rows at once.

``Encoding`` says how a value begins: ``pgoutput`` writes a letter, and behind ``t`` a length and the text;
``record_send`` writes a type, and a length that is -1 for NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

_NULL, _UNCHANGED, _TEXT = (ord(letter) for letter in "nut")
_PADDING = bytes(16)
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Values:
    """A column: where its texts begin, and how long they are; -1 for NULL, -2 for a value that was not sent
    because it has not changed."""

    starts: Ints
    lengths: Ints

    def chosen(self, rows: Any) -> Values:
        return Values(self.starts[rows], self.lengths[rows])

    def or_else(self, others: Values) -> Values:
        """``others`` where a value was not sent."""
        here = self.lengths != UNCHANGED
        return Values(
            np.where(here, self.starts, others.starts), np.where(here, self.lengths, others.lengths)
        )

    @staticmethod
    def joined(parts: list[Values]) -> Values:
        return Values(np.concatenate([p.starts for p in parts]), np.concatenate([p.lengths for p in parts]))


NULL, UNCHANGED = -1, -2


class Bytes:
    """Texts one behind the other: ``ends`` of each, and numbers at any place of them."""

    def __init__(self, parts: list[bytes]) -> None:
        self.data = np.frombuffer(b"".join([*parts, _PADDING]), np.uint8)
        self.ends: Ints = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        self.starts: Ints = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[: len(parts)]
        size = len(self.data)
        self._shorts = np.ndarray((size - 1,), ">i2", self.data.data, strides=(1,))
        self._ints = np.ndarray((size - 3,), ">i4", self.data.data, strides=(1,))
        self._longs = np.ndarray((size - 7,), ">i8", self.data.data, strides=(1,))

    def letters(self, places: Ints) -> Any:
        return self.data[places]

    def shorts(self, places: Ints) -> Ints:
        return self._shorts[places].astype(np.int64)

    def ints(self, places: Ints) -> Ints:
        return self._ints[places].astype(np.int64)

    def longs(self, places: Ints) -> Ints:
        return self._longs[places].astype(np.int64)

    def changed(self, places: Ints, columns: int) -> tuple[list[Values], Ints]:
        """The columns of rows that ``pgoutput`` has written at ``places``, and where the rows end."""
        found = []
        for _ in range(columns):
            letters = self.letters(places)
            sent = letters == _TEXT
            lengths = np.where(sent, self.ints(places + 1), np.where(letters == _NULL, NULL, UNCHANGED))
            found.append(Values(places + 5, lengths))
            places = np.where(sent, places + 5 + lengths, places + 1)
        return found, places

    def recorded(self, columns: int) -> list[Values]:
        """The columns of rows by ``record_send``, one row a text."""
        places, found = self.starts + 4, []
        for _ in range(columns):
            lengths = self.ints(places + 4)
            found.append(Values(places + 8, lengths))
            places = places + 8 + np.maximum(lengths, 0)
        return found

    def texts(self, values: Values) -> pa.Array:
        """As strings; ArrowInvalid for bytes that are not UTF-8."""
        lengths = np.maximum(values.lengths, 0)
        ends = np.cumsum(lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), ends])
        within = np.arange(offsets[-1]) + np.repeat(values.starts - offsets[:-1], lengths)
        bits = None
        if (values.lengths < 0).any():
            bits = pa.py_buffer(np.packbits(values.lengths >= 0, bitorder="little"))
        buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(self.data[within])]
        return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers).cast(pa.string())
