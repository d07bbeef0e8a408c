"""A digest of a function's own code, by which a job detects that the function changed.

The digest covers the bytecode of the function, or of the methods of an object's classes, and of all functions
defined inside. It does not cover code that the function calls elsewhere. Another minor version of Python
compiles to other bytecode, so digests of different versions cannot be compared (``same_code``).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from tidemill.user_functions.kinds import AggregateFunction

_COMPILER = f"{sys.version_info.major}.{sys.version_info.minor}"


def code_digest(body: Any) -> str:
    """``<Python's version>:<digest>``; '' for what has no code in Python."""
    codes = list(_codes(body))
    if not codes:
        return ""
    digest = hashlib.sha256()
    for code in codes:
        constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
        digest.update(repr((code.co_code, code.co_names, code.co_varnames, constants)).encode())
    return f"{_COMPILER}:{digest.hexdigest()[:16]}"


def same_code(first: str, second: str) -> bool:
    """Whether the digests do not prove that the code differs."""
    compilers = {one.partition(":")[0] for one in (first, second)}
    return first == second or len(compilers) > 1


def _codes(body: Any) -> Iterator[CodeType]:
    waiting: list[object] = [getattr(body, "__func__", body)]
    if not hasattr(waiting[0], "__code__"):
        kinds = [k for k in type(body).__mro__ if k not in (object, AggregateFunction)]
        waiting = [value for kind in kinds for _, value in sorted(vars(kind).items(), key=lambda e: e[0])]
    while waiting:
        part = waiting.pop(0)
        code = part if isinstance(part, CodeType) else getattr(part, "__code__", None)
        if isinstance(code, CodeType):
            yield code
            waiting += [c for c in code.co_consts if isinstance(c, CodeType)]
