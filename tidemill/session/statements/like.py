"""[NOT] LIKE / ILIKE of SHOW statements."""

from __future__ import annotations

import re

from tidemill.sql.statements import Show


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
    return "".join(_WILD.get(p) or re.escape(p[-1]) for p in parts)


_WILD = {"%": ".*", "_": "."}
