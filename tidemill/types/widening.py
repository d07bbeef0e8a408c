"""Types that hold all values of others, so that what was computed of the narrower goes on as the wider."""

from __future__ import annotations

import re

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_SIZED = re.compile(r"(VARCHAR|VARBINARY)\((\d+)\)|DECIMAL\((\d+), (\d+)\)")
_LONGEST = 2_147_483_647
_PLAIN = {"STRING": f"VARCHAR({_LONGEST})", "BYTES": f"VARBINARY({_LONGEST})"}


def is_wider(narrow: str, wide: str) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``, as the same number or text; equal types are.

    Example: INT and BIGINT, VARCHAR(3) and STRING, DECIMAL(5, 2) and DECIMAL(9, 2). Nullability does not
    count.
    """
    a, b = (_PLAIN.get(t, t) for t in (_bare(narrow), _bare(wide)))
    if a == b:
        return True
    if a in _INTEGERS and b in _INTEGERS:
        return _INTEGERS.index(a) < _INTEGERS.index(b)
    left, right = _SIZED.fullmatch(a), _SIZED.fullmatch(b)
    if left is None or right is None or left[1] != right[1]:
        return False
    if left[1]:
        return int(left[2]) <= int(right[2])
    return int(left[3]) <= int(right[3]) and left[4] == right[4]


def _bare(kind: str) -> str:
    return kind.removesuffix(" NOT NULL")
