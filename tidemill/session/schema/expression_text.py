"""The text of an expression as Flink prints it back: names in backquotes, words in upper case, one
space between tokens, none inside parentheses or around dots. Works on tokens; the meaning stays."""

from __future__ import annotations

from tidemill.sql.lexer import Kind, Token, tokens
from tidemill.sql.reserved import RESERVED

_NO_SPACE_BEFORE = frozenset({")", ",", ".", "]", "["})
_NO_SPACE_AFTER = frozenset({"(", ".", "["})
_BEFORE_OPERAND = frozenset({"(", ",", "[", "+", "-", "*", "/", "%", "=", "<", ">", "<=", ">=", "<>", "||"})


def canonical(text: str) -> str:
    """``ts-interval '5' second`` becomes ```ts` - INTERVAL '5' SECOND``."""
    found = [t for t in tokens(text) if t.kind is not Kind.EOF]
    shown = ""
    for i, token in enumerate(found):
        before = found[i - 1] if i else None
        after = found[i + 1] if i + 1 < len(found) else None
        glue = "" if before is None or _joined(before, token, found[i - 2] if i > 1 else None) else " "
        shown += glue + _shown(token, before, after)
    return shown


def _joined(before: Token, token: Token, earlier: Token | None) -> bool:
    if before.text in _NO_SPACE_AFTER or token.text in _NO_SPACE_BEFORE:
        return True
    if before.text == "-" and (earlier is None or earlier.text in _BEFORE_OPERAND):
        return True
    return token.text == "(" and before.kind in (Kind.WORD, Kind.QUOTED) and before.upper not in _SPACED


def _shown(token: Token, before: Token | None, after: Token | None) -> str:
    if token.kind is not Kind.WORD:
        return token.text
    is_name = before is not None and before.text == "."
    if not is_name and _is_unit(token, before):
        return token.upper.removesuffix("S")
    if not is_name and (token.upper in RESERVED or token.upper in _TYPES):
        return token.upper
    if after is not None and after.text == "(":
        return token.upper
    return f"`{token.value}`"


def _is_unit(token: Token, before: Token | None) -> bool:
    return (
        token.upper in _UNITS and before is not None and (before.kind is Kind.STRING or before.upper == "TO")
    )


_SPACED = frozenset({"AND", "OR", "NOT", "IN", "AS", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "CASE"})
_TYPES = frozenset({"STRING", "BYTES", "TIMESTAMP_LTZ"})
_UNITS = frozenset(
    f"{u}{s}"
    for u in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
    for s in ("", "S")
)
