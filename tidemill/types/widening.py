"""Types that hold all values of other types, so state of the narrower type can be used as the wider type."""

from __future__ import annotations

import re

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_FLOATS = ("FLOAT", "DOUBLE")
_SIZED = re.compile(r"(?:(VAR)?(CHAR|BINARY))\((\d+)\)")
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")
_LONGEST = 2_147_483_647
_PLAIN = {"STRING": f"VARCHAR({_LONGEST})", "BYTES": f"VARBINARY({_LONGEST})"}


def is_wider(narrow: str, wide: str) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``, as the same number or text; equal types are.

    Example: INT and BIGINT, FLOAT and DOUBLE, CHAR(3) and STRING, DECIMAL(5, 2) and DECIMAL(9, 4), but not
    DECIMAL(5, 2) and DECIMAL(5, 4), nor CHAR(3) and CHAR(5). Nullability does not count.
    """
    a, b = _spelled(narrow), _spelled(wide)
    for ordered in (_INTEGERS, _FLOATS):
        if a in ordered and b in ordered:
            return ordered.index(a) <= ordered.index(b)
    texts = _SIZED.fullmatch(a), _SIZED.fullmatch(b)
    if texts[0] is not None and texts[1] is not None and a != b:
        (_, kind, length), (varying, other, longest) = (text.groups() for text in texts if text is not None)
        return kind == other and bool(varying) and int(length) <= int(longest)
    left, right = _DECIMAL.fullmatch(a), _DECIMAL.fullmatch(b)
    if left is None or right is None:
        return a == b
    (digits, behind), (more, further) = (map(int, found.groups()) for found in (left, right))
    return behind <= further and digits - behind <= more - further


def kind_of(text: str) -> str:
    """What all types have in common of which one may be wider than another, and whose values are compared,
    computed and hashed alike; a type that has no such others is its own kind.

    Example: INT and BIGINT, CHAR(3) and STRING, DECIMAL(5, 2) and DECIMAL(9, 2), but not DECIMAL(9, 3), nor
    FLOAT and DOUBLE.
    """
    kind = _spelled(text)
    if kind in _INTEGERS:
        return "BIGINT"
    sized, decimal = _SIZED.fullmatch(kind), _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return f"DECIMAL(38, {decimal[2]})"
    return kind if sized is None else f"VAR{sized[2]}"


def family_of(text: str) -> str:
    """As ``kind_of``, also for types whose values are compared, computed or hashed in other ways: FLOAT and
    DOUBLE, and decimals of all scales."""
    kind = kind_of(text)
    if kind in _FLOATS:
        return "DOUBLE"
    return "DECIMAL" if _DECIMAL.fullmatch(kind) else kind


def _spelled(kind: str) -> str:
    bare = _bare(kind)
    return _PLAIN.get(bare, bare)


def _bare(kind: str) -> str:
    return kind.removesuffix(" NOT NULL")
