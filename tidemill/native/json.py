"""Lines of flat JSON objects to Arrow columns by the compiled core."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidemill.native.columns import COLUMN, NUMBERS, Target
from tidemill.native.library import library

_MOST_COLUMNS = 64


def plain_json(data: pa.Buffer, kinds: Mapping[str, pa.DataType]) -> list[pa.Array] | None:
    """The values of the keys ``kinds`` in each line: whole numbers, floats or strings. A missing key is NULL,
    a string shows a number or a boolean as it is spelt.

    The result is None without a compiled core, and if ``data`` is not plain: an empty line, a carriage
    return, several objects in a line, a nested value of a wanted key, a wanted key that comes twice, a key
    with an escape, ``\\u``, a number that is quoted or not spelt by digits alone, damaged JSON or UTF-8.
    """
    core = library()
    known = (*NUMBERS, pa.string())
    if core is None or not data.size or data.size >= 1 << 31:
        return None
    if not 0 < len(kinds) <= _MOST_COLUMNS or any(kind not in known for kind in kinds.values()):
        return None
    _, ends, names = pa.array([*kinds], pa.string()).buffers()
    if not names or not names.size:
        return None
    rows = core.tidemill_count(data.address, data.size, ord("\n")) + 1
    targets = [Target(kind, rows, data.size, nullable=True) for kind in kinds.values()]
    columns = np.array([target.described() for target in targets], COLUMN)
    read = core.tidemill_json(
        data.address, data.size, names.address, ends.address, columns.ctypes.data, len(columns), rows
    )
    return None if read < 0 else [target.array(read) for target in targets]
