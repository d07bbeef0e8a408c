"""Texts of any bytes, within others and alone: what cannot be read is shown as Java shows it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidemill.types.python_values import python_values

TEXTS = pa.Array.from_buffers(
    pa.string(), 3, pa.array([b"ab\xe9c", None, "é".encode()], pa.binary()).buffers(), null_count=1
)
NUMBERS = pa.array([1, 2, 3])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (TEXTS, ["ab\ufffdc", None, "é"]),
        (pa.chunked_array([TEXTS.slice(1), TEXTS]), [None, "é", "ab\ufffdc", None, "é"]),
        (TEXTS.slice(2), ["é"]),
        (pa.ListArray.from_arrays([0, 0, 3], TEXTS), [[], ["ab\ufffdc", None, "é"]]),
        (pa.StructArray.from_arrays([NUMBERS, TEXTS], ["n", "s"]).slice(0, 1), [{"n": 1, "s": "ab\ufffdc"}]),
        (pa.MapArray.from_arrays([0, 3], NUMBERS, TEXTS), [[(1, "ab\ufffdc"), (2, None), (3, "é")]]),
    ],
)
def test_what_cannot_be_read_is_replaced(column: Any, expected: list[Any]) -> None:
    assert python_values(column) == expected
