"""Where a syntax tree's nodes stand in the script.

The grammar marks names, literals, calls and operators; other nodes take the position of the first
marked node below them.
"""

from __future__ import annotations

from typing import TypeVar

from sqlglot import exp

from tidemill.errors import Position
from tidemill.sql.lexer import Token

E = TypeVar("E", bound=exp.Expr)


def place(node: E, token: Token) -> E:
    """Gives ``node`` the position of ``token``, and the node back."""
    node.meta["line"] = token.position.line
    node.meta["col"] = token.position.column
    return node


def position_of(node: exp.Expr) -> Position | None:
    """The 1-based line and column of ``node`` in its script, None for trees not made from text."""
    for child in node.walk(bfs=False):
        if "line" in child.meta:
            return Position(child.meta["line"], child.meta["col"])
    return None
