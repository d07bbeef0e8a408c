"""Questions about a node: what the planner, EXPLAIN and stored state ask of its class.

A question is a ``singledispatch`` function. It stands where it is asked (``traits``, ``running``,
``digests``, ``lineage``, ``explain``) and says what it means and what the default is. The answers stand by
operator (``operators``). If no default is safe, the question is ``without_default``: each node class must
answer it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeVar

from tidemill.errors import InternalError

if TYPE_CHECKING:
    from functools import _SingleDispatchCallable

T = TypeVar("T")
WITHOUT_DEFAULT: list[_SingleDispatchCallable[Any]] = []


def without_default(question: Callable[..., T]) -> _SingleDispatchCallable[T]:
    """A question that each node class must answer. ``question`` raises ``unanswered``."""
    asked = singledispatch(question)
    WITHOUT_DEFAULT.append(asked)
    return asked


def unanswered(question: str, node: object) -> InternalError:
    return InternalError(f"{type(node).__name__} does not say {question}")
