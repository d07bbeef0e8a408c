"""The reading position in a statement's tokens, and the syntax errors.

Invariant: a method either does not move the cursor and returns a false value, or moves past the tokens that
it took. ``expect...`` methods raise SqlSyntaxError with Flink's message. Cost: constant per step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, SqlSyntaxError
from tidemill.sql.lexer import START, Kind, Token, swallowing, tokens, unicode_string
from tidemill.sql.positions import place
from tidemill.sql.reserved import RESERVED

# If one of these words is in the place of a name, the name is usually missing.
_NEVER_NAMES = frozenset({
    "AND", "AS", "BY", "EXCEPT", "FROM", "HAVING", "INTERSECT", "JOIN", "ON", "OR", "SELECT", "THEN",
    "UNION", "WHEN", "WHERE",
})  # fmt: skip
# In the place of a name, Flink has another error text for a keyword in capitals.
_NAMES = frozenset({"<IDENTIFIER>", "<EXPRESSION>", "<TYPE>", "<EOF>"})
_CLAUSES = (
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "JOIN",
    "VALUES", "SELECT", "INSERT", "CREATE", "PARTITION", "PRIMARY", "WATERMARK", "BETWEEN", "DISTINCT",
)  # fmt: skip
_LONGEST_INTEGER = 19
T = TypeVar("T")


class Cursor:
    """Tokens of one statement, whose text is ``text``; ``current`` is the next one to be taken, the one at
    ``index``."""

    __slots__ = ("_parentheses", "_tokens", "current", "index", "text")

    def __init__(self, text: str, origin: Position = START) -> None:
        self.text = text
        self._tokens = list(tokens(text, origin))
        self.index = 0
        self.current = self._tokens[0]
        self._parentheses: Parentheses | None = None

    @property
    def parentheses(self) -> Parentheses:
        """Of the whole statement, by the tokens' indexes."""
        if self._parentheses is None:
            self._parentheses = Parentheses.of(self._tokens)
        return self._parentheses

    @property
    def previous(self) -> Token:
        return self._tokens[max(self.index - 1, 0)]

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self.index + ahead, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.current
        if token.kind is not Kind.EOF:
            self._move(1)
        return token

    def _move(self, count: int) -> None:
        self.index += count
        self.current = self._tokens[self.index]

    def at_end(self) -> bool:
        return self.current.kind is Kind.EOF

    def at_kind(self, kind: Kind) -> bool:
        return self.current.kind is kind

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these keywords or symbols, in this order."""
        if self.current.upper != words[0]:
            return False
        return len(words) == 1 or all(self.peek(i).upper == word for i, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        return self.current.upper in words

    def take(self, *words: str) -> bool:
        """Moves past these keywords or symbols, all or none."""
        if not self.at(*words):
            return False
        self._move(len(words))
        return True

    def take_any(self, *words: str) -> str:
        """Moves past one of ``words`` and returns it; otherwise ''."""
        return self.advance().upper if self.current.upper in words else ""

    def took(self, *words: str) -> Token | None:
        """Moves past one of ``words`` and returns its token."""
        return self.advance() if self.current.upper in words else None

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                self.fail(word)

    def expect_any(self, *words: str) -> str:
        if not self.at_any(*words):
            self.fail(*words)
        return self.advance().upper

    def fail(self, *expected: str) -> NoReturn:
        """Raises the syntax error of the current token."""
        token = self.current
        message = f'Encountered "{token.text}" at {token.position}.'
        if token.text in RESERVED and not _NAMES.isdisjoint(expected):
            message = f"Incorrect syntax near the keyword '{token.text}' at {token.position}."
        hint = self._swallowed() or self.nearest(expected) or self._quoting(expected)
        raise SqlSyntaxError(message, position=token.position, expected=expected, hint=hint)

    def _swallowed(self) -> str:
        return next(filter(None, map(swallowing, self._tokens[: self.index + 1])), "")

    def nearest(self, expected: tuple[str, ...]) -> str:
        """A hint if this word, or the word before it, looks like a misspelt keyword.

        ``FORM t`` fails at ``t``, because FORM itself was parsed as an alias.
        """
        for token in (self.current, self.previous):
            if token.kind is Kind.WORD and token.upper not in RESERVED:
                for word in get_close_matches(token.upper, (*expected, *_CLAUSES), n=1, cutoff=0.75):
                    return f"Did you mean {word} instead of {token.text}?"
        return ""

    def _quoting(self, expected: tuple[str, ...]) -> str:
        """A hint if a reserved word is in the place of a name."""
        token = self.current
        reserved = token.kind is Kind.WORD and token.upper in RESERVED - _NEVER_NAMES
        if reserved and not {"<IDENTIFIER>", "<EXPRESSION>"}.isdisjoint(expected):
            return f"{token.upper} is a reserved word; as a name it is written `{token.text}`"
        return ""

    def refuse(self, feature: str, token: Token | None = None) -> NoReturn:
        raise NotSupportedError(f"{feature} is not supported", position=(token or self.current).position)

    def identifier(self) -> exp.Identifier:
        """A simple name: quoted, or a word that is not reserved."""
        token = self.current
        if token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.upper not in RESERVED):
            self.advance()
            return place(exp.Identifier(this=token.value, quoted=token.kind is Kind.QUOTED), token)
        self.fail("<IDENTIFIER>")

    def at_identifier(self) -> bool:
        token = self.current
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.upper not in RESERVED)

    def path(self) -> list[exp.Identifier]:
        """A dotted name."""
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        return parts

    def names(self) -> tuple[str, ...]:
        """A dotted name as plain text parts."""
        return tuple(part.name for part in self.path())

    def name_list(self) -> tuple[str, ...]:
        """``(a, b, c)``."""
        return tuple(self.wrapped(lambda: self.identifier().name))

    def string(self) -> str:
        """A character literal; literals on lines of their own below it continue it."""
        if not self.at_kind(Kind.STRING):
            self.fail("<QUOTED_STRING>")
        token = self.advance()
        if token.text[:2].upper() == "U&":
            escape = self.advance().value if self.take("UESCAPE") else "\\"
            try:
                return unicode_string(token.text, escape) + self.continued_string()
            except ValueError as e:
                raise SqlSyntaxError(str(e), position=token.position) from None
        return token.value + self.continued_string()

    def continued_string(self) -> str:
        """The literals that continue the one before the cursor."""
        text = ""
        while self.at_kind(Kind.STRING):
            token, before = self.current, self.previous
            if "\n" not in self.text[before.end : token.start]:
                raise SqlSyntaxError("String literal continued on same line", position=token.position)
            text += self.advance().value
        return text

    def number(self) -> str:
        if not self.at_kind(Kind.NUMBER):
            self.fail("<NUMBER>")
        return self.advance().value

    def integer(self) -> int:
        if not self.at_kind(Kind.NUMBER) or not self.current.value.isdigit():
            self.fail("<UNSIGNED_INTEGER_LITERAL>")
        if len(self.current.value.lstrip("0")) > _LONGEST_INTEGER:
            message = f"Numeric literal '{self.current.value}' out of range"
            raise SqlSyntaxError(message, position=self.current.position)
        return int(self.advance().value)

    def separated(self, item: Callable[[], T]) -> list[T]:
        """``item, item, ...``, at least one."""
        items = [item()]
        while self.take(","):
            items.append(item())
        return items

    def wrapped(self, item: Callable[[], T]) -> list[T]:
        """``(item, item, ...)``, at least one."""
        self.expect("(")
        items = self.separated(item)
        self.expect(")")
        return items

    def text_since(self, token: Token) -> str:
        """The text as written from ``token`` to the last token taken."""
        return self.text[token.start : self.previous.end]


_QUERY_STARTS = ("SELECT", "VALUES", "WITH")


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


def at_query(cursor: Cursor) -> bool:
    """Whether a query starts here, also behind opening parentheses."""
    ahead = cursor.parentheses.opened(cursor.index)
    word = cursor.peek(ahead).upper
    return word in _QUERY_STARTS or (word == "TABLE" and cursor.peek(ahead + 1).upper != "(")


def behind_parenthesis(cursor: Cursor, ahead: int) -> Token:
    """The token behind the parenthesis that opens ``ahead`` tokens from here; EOF if none closes it."""
    return cursor.peek(cursor.parentheses.behind(cursor.index + ahead) - cursor.index)
