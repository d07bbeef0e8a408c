"""Which expression of the query an error of one row is about.

Translations say ``raise_error(message)`` wherever a row can fail, however deep in helpers of their own; the
translator of expressions, which alone knows whose text it is, puts the expression's name in front of the
message afterwards: ``raise_error('CAST(s AS INTEGER) failed: ' || message)``. An error inside an argument
has its name already and keeps it, so the innermost expression is named. A name is a constant of a branch
that good rows never take: it costs them nothing, and must not count where the length of a text decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemill.functions.literals import string_literal

_STRING = r"'(?:[^'\\]++|\\.)*+'"
_RAISED = "raise_error("
_NAMED = re.compile(rf"raise_error\({_STRING} \|\| ", re.DOTALL)
# Strings and quoted names come first: what they hold is no call.
_UNNAMED = re.compile(rf"{_STRING}|`[^`]*`|raise_error\((?!{_STRING} \|\| )", re.DOTALL)
_LONGEST_NAME = 200


def named(sql: str, expression: Callable[[], str]) -> str:
    """``sql`` with the text of ``expression``, which is asked for only then, in errors that have no name."""
    if sql.count(_RAISED) == len(_NAMED.findall(sql)):
        return sql
    name = expression()
    short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "..."
    start = f"{_RAISED}{string_literal(f'{short} failed: ')} || "
    return _UNNAMED.sub(lambda match: start if match[0] == _RAISED else match[0], sql)


def length(sql: str) -> int:
    """How long ``sql`` is without the names in its errors."""
    return len(_NAMED.sub(_RAISED, sql)) if _RAISED in sql else len(sql)
