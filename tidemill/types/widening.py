"""Types that hold all values of other types, so state of the narrower type can be used as the wider type."""

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
    a, b = _spelled(narrow), _spelled(wide)
    if a in _INTEGERS and b in _INTEGERS:
        return _INTEGERS.index(a) <= _INTEGERS.index(b)
    left, right = _SIZED.fullmatch(a), _SIZED.fullmatch(b)
    if left is None or right is None or kind_of(a) != kind_of(b):
        return a == b
    return int(left[2] or left[3]) <= int(right[2] or right[3])


def kind_of(text: str) -> str:
    """What all types have in common of which one may be wider than another; a type that has no such others is
    its own kind.

    Example: INT and BIGINT, VARCHAR(3) and STRING, DECIMAL(5, 2) and DECIMAL(9, 2), but not DECIMAL(9, 3).
    """
    kind = _spelled(text)
    if kind in _INTEGERS:
        return "BIGINT"
    sized = _SIZED.fullmatch(kind)
    return kind if sized is None else sized[1] or f"DECIMAL(38, {sized[4]})"


def _spelled(kind: str) -> str:
    bare = _bare(kind)
    return _PLAIN.get(bare, bare)


def _bare(kind: str) -> str:
    return kind.removesuffix(" NOT NULL")
