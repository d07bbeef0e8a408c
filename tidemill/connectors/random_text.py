"""Columns of random text, vectorised: characters drawn as one byte array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

Lengths = npt.NDArray[np.int64]


def letters(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Small letters, one text per length."""
    return _texts(_LETTERS[rng.integers(0, 26, int(lengths.sum()), dtype=np.uint8)], lengths)


def hexadecimal(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Hexadecimal digits, one text per length."""
    return _texts(_HEX[rng.integers(0, 16, int(lengths.sum()), dtype=np.uint8)], lengths)


def binary(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Bytes, one value per length."""
    data = rng.integers(0, 256, int(lengths.sum()), dtype=np.uint8)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, _offsets(lengths), pa.py_buffer(data.tobytes())]
    )


def _texts(characters: npt.NDArray[np.uint8], lengths: Lengths) -> pa.Array:
    return pa.StringArray.from_buffers(len(lengths), _offsets(lengths), pa.py_buffer(characters.tobytes()))


def _offsets(lengths: Lengths) -> pa.Buffer:
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.py_buffer(ends.tobytes())
