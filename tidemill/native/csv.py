"""Plain CSV to Arrow columns by the compiled core."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemill.native.columns import COLUMN, NUMBERS, SKIPPED, Target
from tidemill.native.library import library


def plain_csv(
    data: pa.Buffer, kinds: Sequence[pa.DataType | None], *, delimiter: str, quote: str, null: str | None
) -> list[pa.Array] | None:
    """The columns of ``data`` that have a kind: whole numbers, floats or strings; None says skip.

    ``delimiter`` and ``quote``: ASCII; an empty quote is none. ``null``: the text that means NULL.

    The result is None without a compiled core, and if ``data`` is not plain: a quote, a carriage return, an
    empty line, a record with another number of fields, a number not spelt by digits alone, invalid UTF-8.
    """
    core = library()
    known = (*NUMBERS, pa.string(), None)
    if core is None or not data.size or data.size >= 1 << 31 or any(kind not in known for kind in kinds):
        return None
    rows = core.tidemill_count(data.address, data.size, ord("\n")) + 1
    targets = [None if kind is None else Target(kind, rows, data.size, null is not None) for kind in kinds]
    columns = np.array([SKIPPED if t is None else t.described() for t in targets], COLUMN)
    literal = None if null is None else null.encode()
    read = core.tidemill_csv(
        data.address,
        data.size,
        ord(delimiter),
        ord(quote or "\n"),
        literal,
        len(literal or b""),
        columns.ctypes.data,
        len(columns),
        rows,
    )
    return None if read < 0 else [target.array(read) for target in targets if target is not None]
