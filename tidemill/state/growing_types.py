"""Types that stored columns may grow to.

The hashes of keys decide the partition and the order of rows, so a key may change its type only if its
values keep their hashes. Integers of all widths hash alike, and so do decimals of one scale. DECIMAL(5, 2)
and DECIMAL(9, 3) hash the same number differently, as do FLOAT and DOUBLE: only other columns may grow so.
"""

from __future__ import annotations

import re

_GROWS = re.compile(r"(?:int(8|16|32|64)|decimal128\((\d+), (-?\d+)\))(.*)")
_FLOATS = ("float", "double")
_MOST = 38
"""Digits of a sum of decimals; what is beyond them is in a column of its own (``layout.EXCESS``)."""


def grows(stored: str, declared: str, *, key: bool = False) -> bool:
    """Whether all values of the type ``stored`` are values of the type ``declared``; of a ``key``, with the
    same hashes. No type grows to itself. Descriptions are those of ``Layout.described``: a type and a
    version.

    Example: ``int32`` to ``int64``, ``decimal128(5, 2)`` to ``decimal128(9, 2)``.
    """
    if (stored, declared) == _FLOATS:
        return not key
    a, b = _GROWS.fullmatch(stored), _GROWS.fullmatch(declared)
    if a is None or b is None or a[4] != b[4]:
        return False
    if a[3] == b[3]:
        return int(a[1] or a[2]) < int(b[1] or b[2])
    if key or a[3] is None or b[3] is None:
        return False
    (digits, behind), (more, further) = ((int(x[2]), int(x[3])) for x in (a, b))
    return behind < further and (digits - behind <= more - further or digits == more == _MOST)
