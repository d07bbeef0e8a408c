"""Checks of arguments from Python programs, which nothing else type-checks.

Without them the error is Python's own, from a place that the caller does not know.
"""

from __future__ import annotations

from typing import Any, TypeVar

from tidemill.errors import ValidationError

_T = TypeVar("_T")
_LONGEST = 80


def text(value: str, what: str) -> str:
    """``value``, if it is a text. ``what`` says what it is: "The path of from_path()"."""
    return one_of(value, str, what, "a text")


def details(values: tuple[str, ...]) -> tuple[str, ...]:
    """``values``, if all are texts: what EXPLAIN shall add."""
    return tuple(text(value, "A detail of explain()") for value in values)


def one_of(value: _T, kind: type, what: str, kind_name: str) -> _T:
    """``value``, if it is a ``kind``; else ValidationError, in which the kind is called ``kind_name``."""
    if not isinstance(value, kind):
        raise ValidationError(f"{what} must be {kind_name}, not {shown(value)}")
    return value


def shown(value: Any) -> str:
    """The value as a program writes it, cut after 80 characters."""
    as_python = value.as_py() if hasattr(type(value), "as_py") else value
    written = repr(as_python)
    return written if len(written) <= _LONGEST else written[: _LONGEST - 3] + "..."
