"""Pairs the parentheses of a statement once, because counting them at each level would be quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.sql.lexer import Token


@dataclass(frozen=True, slots=True)
class Parentheses:
    """By a token's index: ``_opened``, how many open in a row from there; ``_behind``, of one that opens, the
    index of the token behind the one that closes it."""

    _opened: Sequence[int]
    _behind: Sequence[int]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Parentheses:
        """``tokens`` end with EOF."""
        last = len(tokens) - 1
        opened, behind, waiting = [0] * len(tokens), [last] * len(tokens), list[int]()
        for i in range(last, -1, -1):
            if tokens[i].upper == "(":
                opened[i] = opened[i + 1] + 1
                behind[i] = waiting.pop() + 1 if waiting else last
            elif tokens[i].upper == ")":
                waiting.append(i)
        return cls(opened, behind)

    def opened(self, index: int) -> int:
        return self._opened[index]

    def behind(self, index: int) -> int:
        """EOF's index where none closes it."""
        return self._behind[index]
