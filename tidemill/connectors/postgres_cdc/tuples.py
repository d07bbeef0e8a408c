"""Decodes rows of the server's two row encodings, one column of all rows at a time.

``pgoutput`` begins a value with a letter; behind the letter ``t`` come a length and the text. ``record_send``
begins a value with a type and a length; the length is -1 for NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

_NULL, _NOT_SENT_MARK, _TEXT = (ord(letter) for letter in "nut")
_PADDING = bytes(16)
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Values:
    """A column: the offset of each text, and its length in bytes. The length is NULL (-1) for NULL, and
    NOT_SENT (-2) if the server did not send the value because an update did not change it."""

    starts: Ints
    lengths: Ints

    def take(self, rows: Any) -> Values:
        return Values(self.starts[rows], self.lengths[rows])

    def or_else(self, others: Values) -> Values:
        """These values, with the value of ``others`` where one was not sent."""
        sent = self.lengths != NOT_SENT
        return Values(
            np.where(sent, self.starts, others.starts), np.where(sent, self.lengths, others.lengths)
        )

    @staticmethod
    def joined(parts: list[Values]) -> Values:
        return Values(np.concatenate([p.starts for p in parts]), np.concatenate([p.lengths for p in parts]))


NULL, NOT_SENT = -1, -2


class ByteBuffer:
    """Concatenated byte strings, ``starts`` and ``ends`` of each, and big-endian numbers at any offset."""

    def __init__(self, parts: list[bytes]) -> None:
        self.data = np.frombuffer(b"".join([*parts, _PADDING]), np.uint8)
        self.ends: Ints = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        self.starts: Ints = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])[: len(parts)]
        size = len(self.data)
        self._shorts = np.ndarray((size - 1,), ">i2", self.data.data, strides=(1,))
        self._ints = np.ndarray((size - 3,), ">i4", self.data.data, strides=(1,))
        self._longs = np.ndarray((size - 7,), ">i8", self.data.data, strides=(1,))

    def letters(self, offsets: Ints) -> Any:
        return self.data[offsets]

    def shorts(self, offsets: Ints) -> Ints:
        return self._shorts[offsets].astype(np.int64)

    def ints(self, offsets: Ints) -> Ints:
        return self._ints[offsets].astype(np.int64)

    def longs(self, offsets: Ints) -> Ints:
        return self._longs[offsets].astype(np.int64)

    def pgoutput_rows(self, offsets: Ints, columns: int) -> tuple[list[Values], Ints]:
        """The columns of the ``pgoutput`` rows at ``offsets``, and the offsets where the rows end."""
        values = []
        for _ in range(columns):
            letters = self.letters(offsets)
            sent = letters == _TEXT
            lengths = np.where(sent, self.ints(offsets + 1), np.where(letters == _NULL, NULL, NOT_SENT))
            values.append(Values(offsets + 5, lengths))
            offsets = np.where(sent, offsets + 5 + lengths, offsets + 1)
        return values, offsets

    def record_send_rows(self, columns: int) -> list[Values]:
        """The columns of rows of ``record_send``, if each byte string of the buffer is such a row."""
        offsets, values = self.starts + 4, []
        for _ in range(columns):
            lengths = self.ints(offsets + 4)
            values.append(Values(offsets + 8, lengths))
            offsets = offsets + 8 + np.maximum(lengths, 0)
        return values

    def texts(self, values: Values) -> pa.Array:
        """``values`` as strings. ArrowInvalid if bytes are not UTF-8."""
        lengths = np.maximum(values.lengths, 0)
        ends = np.cumsum(lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), ends])
        bytes_of_texts = np.arange(offsets[-1]) + np.repeat(values.starts - offsets[:-1], lengths)
        validity = None
        if (values.lengths < 0).any():
            validity = pa.py_buffer(np.packbits(values.lengths >= 0, bitorder="little"))
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(self.data[bytes_of_texts])]
        return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers).cast(pa.string())
