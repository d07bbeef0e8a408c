"""Using one argument's text several times without the text growing exponentially.

Short deterministic texts are simply repeated (Spark's subexpression elimination evaluates them once,
and the expression stays in generated code). Longer or non-deterministic ones are bound to a lambda
variable, which is exact but leaves whole-stage code generation, so it is the second choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from zlib import crc32

from tidemill.functions.named_errors import length

_REPEATABLE_LENGTH = 160
_NONDETERMINISTIC = re.compile(r"\b(rand|randn|random|uuid|shuffle)\(", re.IGNORECASE)


def share(sql: str, body: Callable[[str], str]) -> str:
    """``body`` applied to ``sql`` or to a variable that holds its value."""
    if length(sql) <= _REPEATABLE_LENGTH and not _NONDETERMINISTIC.search(sql):
        return body(sql)
    # The name depends on the text alone: nested uses can only shadow a variable of the same value.
    name = f"_v{crc32(sql.encode()):08x}"
    return f"transform(array({sql}), {name} -> {body(name)})[0]"
