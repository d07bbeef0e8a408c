"""The interface of the grammar's recursive parts: expressions and queries."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp


class Nested(Protocol):
    """Expressions contain queries, and queries contain expressions; parts call both through this protocol.

    ``trees.Trees`` gives it; no part imports another that imports it back.
    """

    def expression(self) -> exp.Expression:
        """A value expression, ``a OR b`` and all that binds tighter."""

    def operand(self) -> exp.Expression:
        """``a + b`` and all that binds tighter: it ends before IN, AND, a comparison."""

    def query(self) -> exp.Expression:
        """A query with its WITH, ORDER BY and LIMIT."""
