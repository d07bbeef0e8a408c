"""Types that stored columns may grow to.

Rows lie by the hashes of their keys, in a partition and in the order of runs, so a column may get another
type only if its values keep their hashes. Integers do, whatever their width, and decimals of one scale,
whatever their precision. DECIMAL(5, 2) and DECIMAL(9, 3) hash one number in two ways, as FLOAT and DOUBLE do.
"""

from __future__ import annotations

import re

_GROWS = re.compile(r"(?:int(8|16|32|64)|decimal128\((\d+), (-?\d+)\))(.*)")


def grows(found: str, wanted: str) -> bool:
    """Whether all values of a column described as ``found`` are such of ``wanted``, with the same hashes; no
    type grows to itself. Descriptions are those of ``Layout.described``: a type and a version.

    Example: ``int32`` to ``int64``, ``decimal128(5, 2)`` to ``decimal128(9, 2)``.
    """
    a, b = _GROWS.fullmatch(found), _GROWS.fullmatch(wanted)
    if a is None or b is None or (a[3], a[4]) != (b[3], b[4]):
        return False
    return int(a[1] or a[2]) < int(b[1] or b[2])
