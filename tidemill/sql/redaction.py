"""A statement as it may be shown to people, and kept where they look: without secrets, and not too long."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.config.secrets import MASK, is_secret, masked
from tidemill.errors import SqlSyntaxError
from tidemill.sql.lexer import Kind, Token, tokens

LONGEST = 4_000
"""Characters; of a longer statement the beginning is shown."""
_CUT = " …"


def redacted_statement(text: str) -> str:
    """``text`` with the values of secret options, and passwords in URLs, replaced. What cannot be read is
    left out from there on: it may be a secret that was not closed. No option has a value without a ``=``."""
    if "=" not in text[:LONGEST]:
        return masked(text[:LONGEST]) + (_CUT if text[LONGEST:].strip() else "")
    statement, end = _read(text[:LONGEST])
    pieces: list[str] = []
    start = 0
    for first, last in _hidden(statement):
        pieces += [text[start : statement[first].start], f"'{MASK}'"]
        start = statement[last].end
    pieces.append(text[start:end])
    return masked("".join(pieces)) + (_CUT if text[end:].strip() else "")


def has_secret(text: str) -> bool:
    """Whether ``redacted_statement`` hides something of a statement that can be read."""
    return masked(text) != text or next(_hidden(list(tokens(text))), None) is not None


def _read(text: str) -> tuple[list[Token], int]:
    """The tokens, and where they end; the last one of a text that was cut may be half of one."""
    statement: list[Token] = []
    try:
        for token in tokens(text):
            statement.append(token)
    except SqlSyntaxError:
        return statement, statement[-1].end if statement else 0
    return statement, len(text)


def _hidden(hidden: list[Token]) -> Iterator[tuple[int, int]]:
    """The values of secret options, each by its first and last token."""
    words = [token for token in hidden if token.kind is not Kind.EOF]
    if words and words[0].upper == "SET" and words[1:2] and words[1].kind is not Kind.STRING:
        yield from _bare(words)
        return
    for index in range(2, len(words)):
        key, sign, value = words[index - 2 : index + 1]
        if (
            key.kind is Kind.STRING
            and sign.text == "="
            and value.kind is Kind.STRING
            and is_secret(key.value)
        ):
            yield index, index


def _bare(words: list[Token]) -> Iterator[tuple[int, int]]:
    """``SET a.b-c = some words``."""
    sign = next((i for i, token in enumerate(words) if token.text == "="), len(words))
    if sign + 1 < len(words) and is_secret("".join(token.text for token in words[1:sign])):
        yield sign + 1, len(words) - 1
