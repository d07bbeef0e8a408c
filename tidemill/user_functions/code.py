"""A digest of a function's own code, by which a job detects that the function changed.

The digest covers what the function is made of:

- its bytecode, or that of the methods of an object's classes, and the attributes of the object;
- the values of its defaults and of the variables around it, and the function that it wraps;
- functions, classes and plain values of its own module that it names.

The digest does not cover code of other modules. Another minor version of Python compiles to other bytecode,
so digests of different versions cannot be compared (``same_code``).
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import CodeType, FunctionType, MethodType
from typing import Any

from tidemill.user_functions.kinds import AggregateFunction, UserFunction

_RULES = 2
_COMPILER = f"{sys.version_info.major}.{sys.version_info.minor}+{_RULES}"
_PLAIN = frozenset({bool, int, float, complex, str, bytes, Decimal, date, datetime, time, timedelta})
_CONTAINERS = (tuple, list, set, frozenset, dict)
_MANY = 10_000
"""Parts of one function: a digest covers no more."""


def code_digest(body: Any) -> str:
    """``<Python's version>:<digest>``; '' for what has no code in Python."""
    parts = _Parts()
    texts = list(parts.of(body))
    if not parts.has_code:
        return ""
    return f"{_COMPILER}:{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]}"


def same_code(first: str, second: str) -> bool:
    """Whether the digests do not prove that the code differs."""
    compilers = {one.partition(":")[0] for one in (first, second)}
    return first == second or len(compilers) > 1


@dataclass(slots=True)
class _Parts:
    """What a function is made of, as texts that are the same in every process. ``home``: its module, ''
    before it is known; of functions and classes of other modules only the names count."""

    has_code: bool = False
    home: str = ""
    _seen: dict[int, object] = field(default_factory=dict)

    def of(self, part: object) -> Iterator[str]:
        if isinstance(part, CodeType):
            yield from self._code(part)
        elif isinstance(part, tuple):
            yield from self._values(part)
        elif isinstance(part, frozenset):
            yield from sorted(self._values(part))
        elif part is None or type(part) in _PLAIN:
            yield repr(part)
        elif id(part) in self._seen or len(self._seen) >= _MANY:
            yield type(part).__qualname__
        else:
            # Constants are shared or not as Python likes; what may change, or contain itself, comes once.
            self._seen[id(part)] = part
            yield from self._whole(part)

    def _values(self, parts: Collection[object]) -> Iterator[str]:
        yield f"{type(parts).__name__} {len(parts)}"
        for part in parts if len(parts) <= _MANY else ():
            yield chr(1).join(self.of(part))

    def _whole(self, part: object) -> Iterator[str]:
        if isinstance(part, UserFunction):
            yield from self.of(part.body)
        elif isinstance(part, dict):
            yield from self._values(list(part.items()))
        elif isinstance(part, list):
            yield from self._values(part)
        elif isinstance(part, set):
            yield from sorted(self._values(part))
        elif isinstance(part, MethodType):
            yield from self.of(part.__func__)
            yield from self.of(part.__self__)
        elif isinstance(part, functools.partial):
            yield from self.of((part.func, part.args, part.keywords))
        elif isinstance(part, FunctionType):
            yield from self._function(part)
        elif "__wrapped__" in getattr(part, "__dict__", {}):
            yield from self.of(part.__dict__["__wrapped__"])
        elif isinstance(part, type):
            yield from self._class(part)
        else:
            yield from self._class(type(part))
            yield from self.of(dict(getattr(part, "__dict__", {})))

    def _code(self, code: CodeType) -> Iterator[str]:
        self.has_code = True
        yield repr((code.co_code, code.co_names, code.co_varnames))
        yield from self.of(code.co_consts)

    def _is_elsewhere(self, part: FunctionType | type) -> bool:
        self.home = self.home or part.__module__
        return part.__module__ != self.home

    def _function(self, function: FunctionType) -> Iterator[str]:
        if self._is_elsewhere(function):
            yield f"{function.__module__}.{function.__qualname__}"
            return
        around = (cell.cell_contents for cell in function.__closure__ or () if _is_set(cell))
        yield from self.of((function.__code__, function.__defaults__, function.__kwdefaults__, *around))
        yield from self.of(function.__dict__.get("__wrapped__"))
        names = {name for code in _nested(function.__code__) for name in code.co_names}
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if _is_own(value, self.home):
                yield name
                yield from self.of(value)

    def _class(self, kind: type) -> Iterator[str]:
        yield f"{kind.__module__}.{kind.__qualname__}"
        elsewhere = self._is_elsewhere(kind)
        for base in () if elsewhere else kind.__mro__:
            own = {} if base in (object, AggregateFunction) else vars(base)
            for name, value in sorted(own.items(), key=lambda entry: entry[0]):
                code = getattr(value, "__func__", value)
                code = code.fget if isinstance(code, property) else code
                if isinstance(code, FunctionType):
                    yield name
                    yield from self.of(code)
                elif type(value) in (*_PLAIN, *_CONTAINERS) and not name.startswith("__"):
                    yield name
                    yield from self.of(value)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """The code with all that is defined inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _is_set(cell: Any) -> bool:
    """Whether a variable around a function has a value so far."""
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _is_own(value: object, module: str) -> bool:
    """Whether a global of a function's module is a part of the function, and not of another module."""
    if isinstance(value, UserFunction):
        value = value.body
    return type(value) in (*_PLAIN, *_CONTAINERS) or getattr(value, "__module__", None) == module
