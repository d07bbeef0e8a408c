"""Where quotes open and close in delimited text, vectorised over the positions of the quote bytes.

Shared by the reader (may Arrow parse this block?) and the cutter (is this newline a record's end?).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.signedinteger[Any]]

_LF, _CR = 10, 13


def quotes_are_plain(data: Bytes, positions: Positions, delimiter: str) -> bool:
    """Whether every quote opens at a field's start or closes at its end (or is one of a pair inside).

    ``data`` starts at a record's start. Then the parity of the quotes before a byte tells whether it
    is inside a quoted field. A doubled quote closes and opens again: both of its halves pass.
    """
    return len(positions) % 2 == 0 and alternates(data, positions[0::2], positions[1::2], delimiter)


def alternates(data: Bytes, opening: Positions, closing: Positions, delimiter: str) -> bool:
    """``quotes_are_plain`` of a piece of text: the first opening quote may lie before it (-1), the last field
    may not be closed in it."""
    stops = np.zeros(256, dtype=bool)
    stops[[_LF, _CR, *delimiter.encode()[-1:]]] = True
    before = data[np.maximum(opening - 1, 0)]
    opens = (opening <= 0) | stops[before]
    after = data[np.minimum(closing + 1, len(data) - 1)]
    closes = (closing == len(data) - 1) | stops[after]
    doubled = opening[1:] == closing[: len(opening) - 1] + 1
    opens[1:] |= doubled
    closes[: len(doubled)] |= doubled
    return bool(opens.all() and closes.all())
