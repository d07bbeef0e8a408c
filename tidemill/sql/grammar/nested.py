"""What may stand inside anything else, as the parts of the grammar see it."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp


class Nested(Protocol):
    """Expressions hold queries, queries hold expressions: parts come back to both through this.

    ``trees.Trees`` gives it; no part imports another that imports it back.
    """

    def expression(self) -> exp.Expression:
        """A value expression, ``a OR b`` and all that binds tighter."""

    def operand(self) -> exp.Expression:
        """``a + b`` and all that binds tighter: it ends before IN, AND, a comparison."""

    def query(self) -> exp.Expression:
        """A query with its WITH, ORDER BY and LIMIT."""
