"""Types that stored columns may grow to.

The hashes of keys decide the partition and the order of rows, so a column may change its type only if its
values keep their hashes. Integers of all widths hash alike, and so do decimals of one scale. DECIMAL(5, 2)
and DECIMAL(9, 3) hash the same number differently, as do FLOAT and DOUBLE.
"""

from __future__ import annotations

import re

_GROWS = re.compile(r"(?:int(8|16|32|64)|decimal128\((\d+), (-?\d+)\))(.*)")


def grows(stored: str, declared: str) -> bool:
    """Whether all values of the type ``stored`` are values of the type ``declared``, with the same hashes. No
    type grows to itself. Descriptions are those of ``Layout.described``: a type and a version.

    Example: ``int32`` to ``int64``, ``decimal128(5, 2)`` to ``decimal128(9, 2)``.
    """
    a, b = _GROWS.fullmatch(stored), _GROWS.fullmatch(declared)
    if a is None or b is None or (a[3], a[4]) != (b[3], b[4]):
        return False
    return int(a[1] or a[2]) < int(b[1] or b[2])
