"""[NOT] LIKE / ILIKE of SHOW statements, and other patterns of names with wildcards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from tidemill.sql.statements import Show

ANY = ".*"
"""The part of a pattern that stands for any text."""


def matches(statement: Show, name: str, *, any_case: bool = False) -> bool:
    """Whether ``name`` passes the statement's pattern; true where it has none. ``any_case``: of names that
    mean the same in any case, LIKE is ILIKE."""
    if statement.pattern is None:
        return True
    flags = re.DOTALL | (re.IGNORECASE if statement.case_insensitive or any_case else 0)
    return (re.fullmatch(_expression(statement.pattern), name, flags) is not None) != statement.negated


def _expression(pattern: str) -> str:
    """SQL LIKE as a regular expression; a backslash takes the next character literally."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return expression(_WILD.get(p) or re.escape(p[-1]) for p in parts)


def expression(parts: Iterable[str]) -> str:
    """Parts, each for one character or ``ANY``, as one expression for whole names.

    ``a.*b.*c`` becomes ``a(?>.*?b).*c``: a text behind ``ANY`` is sought once, where it first stands. Another
    place would leave less room for the rest. With ``.*`` alone Python would try all places, which takes hours
    for a pattern with a dozen of them and stops all threads of the process."""
    texts = [""]
    for is_any, run in groupby(parts, ANY.__eq__):
        texts += [""] if is_any else []
        texts[-1] += "" if is_any else "".join(run)
    first, *others = texts
    between = "".join(f"(?>.*?{text})" for text in others[:-1])
    return f"{first}{between}{ANY}{others[-1]}" if others else first


_WILD = {"%": ANY, "_": "."}
