"""Text -> tokens, one at a time, by Flink's lexical rules.

Invariant: a token's ``start`` and ``end`` are offsets into the text, so ``text[start:end]`` is the
token as written; positions count lines and columns from 1 (a tab is one column, as in Flink's own
messages). Comments vanish, hints ``/*+ ... */`` stay. Cost: one regular expression match per token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tidemill.errors import Position, SqlSyntaxError

START = Position(1, 1)


class Kind(Enum):
    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    HEX = auto()
    NUMBER = auto()
    SYMBOL = auto()
    HINT_START = auto()
    HINT_END = auto()
    EOF = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """``value`` is the meaning (a string without its quotes), ``upper`` what grammar compares with.

    ``upper`` is '' for quoted names and strings, so a quoted name is never taken for a keyword.
    """

    kind: Kind
    text: str
    value: str
    upper: str
    start: int
    end: int
    position: Position


_STATEMENT_END = re.compile(r";[ \t]*\n")


class UnclosedError(SqlSyntaxError):
    """A string, quoted name or comment that does not end; more text might end it. ``opening``: its start.

    Flink takes a string up to its last doubled quote for one that ends, and is at the quote behind it
    (``stuck``).
    """

    def __init__(self, what: str, opening: str, position: Position, stuck: Position, hint: str) -> None:
        message = f"Lexical error: a {what} that starts at {position} does not end"
        super().__init__(message, position=stuck, hint=hint)
        self.opening = opening


# What repeats is never given back: else the search would remember each character of a string, in hundreds of
# bytes.
_TOKEN = re.compile(
    r"""
    (?P<space>\s+ | --[^\n\r]* | //[^\n\r]* | /\*(?!\+)[\s\S]*?\*/ )
  | (?P<hint>/\*\+)
  | (?P<unclosed>/\*)
  | (?P<hint_end>\*/)
  | (?P<hex>[xX]'[^']*')
  | (?P<unicode>[uU]&'(?:[^']++|'')*+')
  | (?P<charset>_[A-Za-z0-9_.:-]+'(?:[^']++|'')*+' | [nN]'(?:[^']++|'')*+')
  | (?P<string>'(?:[^']++|'')*+')
  | (?P<quoted>`(?:[^`]++|``)++`)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]* | \$[\w$]+)
  | (?P<symbol><>|<=|>=|!=|\|\||=>|::|->|[-+*/%=<>().,;\[\]{}?:|^@!$&])
    """,
    re.VERBOSE,
)
_KINDS = {
    "hint": Kind.HINT_START,
    "hint_end": Kind.HINT_END,
    "hex": Kind.HEX,
    "unicode": Kind.STRING,
    "charset": Kind.STRING,
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
_UNCLOSED = {"'": "string", "`": "quoted name", "/": "comment"}


_LONE_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character beyond the first plane, which no text can hold alone: Java writes '?'."""


def _between_quotes(text: str) -> str:
    return text[text.index("'") + 1 : -1].replace("''", "'")


def unicode_string(text: str, escape: str = "\\") -> str:
    """The value of ``U&'...'`` as written, whose escapes are ``escape`` and four hexadecimal digits, or
    ``escape``.

    ValueError says where an escape is neither. Two halves of a character beyond the first plane make it.
    """
    content, mark = _between_quotes(text), re.escape(escape)
    pattern = re.compile(f"{mark}(?:({mark})|([0-9A-Fa-f]{{4}}|[+][0-9A-Fa-f]{{3}})|)")

    def shown(match: re.Match[str]) -> str:
        if match[1] is None and match[2] is None:
            index = f"starting at character {match.start()}"
            raise ValueError(f"Unicode escape sequence {index} is not exactly four hex digits")
        return escape if match[1] else chr(int(match[2], 16))

    halves = pattern.sub(shown, content).encode("utf-16", "surrogatepass")
    return _LONE_HALF.sub("?", halves.decode("utf-16", "surrogatepass"))


_VALUES: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text[2:-1],
    "charset": _between_quotes,
    "string": _between_quotes,
    "quoted": lambda text: text[1:-1].replace("``", "`"),
}
_COMPARED = ("word", "symbol", "hint", "hint_end")


class LineIndex:
    """Offset -> position; ``origin`` is where the text's first character stands in its script."""

    def __init__(self, text: str, origin: Position) -> None:
        self._starts = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        self._origin = origin

    def position(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        column = offset - self._starts[line - 1] + 1
        if line == 1:
            return Position(self._origin.line, self._origin.column + column - 1)
        return Position(self._origin.line + line - 1, column)


def tokens(text: str, origin: Position = START) -> Iterator[Token]:
    """The tokens of ``text``, lazily; the last one is EOF.

    Raises UnclosedError at a string, quoted name or comment that does not end, SqlSyntaxError at a
    character that starts nothing, when the iteration comes to it.
    """
    lines = LineIndex(text, origin)
    offset, hint = 0, ""
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup == "unclosed":
            raise _lexical_error(text, offset, lines, hint)
        offset = match.end()
        group = match.lastgroup or "space"
        if group != "space":
            token = _token(group, match, lines)
            hint = hint or swallowing(token)
            yield token
    yield Token(Kind.EOF, "<EOF>", "", "<EOF>", len(text), len(text), _end_position(text, lines))


def _token(group: str, match: re.Match[str], lines: LineIndex) -> Token:
    text = match.group()
    return Token(
        _KINDS[group],
        text,
        _VALUES[group](text) if group in _VALUES else text,
        text.upper() if group in _COMPARED else "",
        match.start(),
        match.end(),
        lines.position(match.start()),
    )


def _end_position(text: str, lines: LineIndex) -> Position:
    """Flink places the end of input at the last character."""
    return lines.position(max(len(text.rstrip()) - 1, 0))


def swallowing(token: Token) -> str:
    """A hint where a string holds the end of a statement: its own end is then likely to be missing."""
    if token.kind is not Kind.STRING or _STATEMENT_END.search(token.text) is None:
        return ""
    return f"The string that starts at {token.position} goes on over lines that end with ';'"


def _lexical_error(text: str, offset: int, lines: LineIndex, hint: str) -> SqlSyntaxError:
    opening, position = text[offset], lines.position(offset)
    unclosed = _UNCLOSED.get(opening)
    if unclosed is not None:
        stuck = lines.position(text.rindex(opening)) if opening == "'" else position
        return UnclosedError(unclosed, opening, position, stuck, hint)
    message = f'Lexical error at {position}. Encountered: "{text[offset]}"'
    return SqlSyntaxError(message, position=position, hint=_quoting(text, offset))


def _quoting(text: str, offset: int) -> str:
    """A hint where another database's quotes stand."""
    if text[offset] != '"':
        return ""
    name = re.match(r'"([^"`\n]+)"', text[offset:])
    return f"Names are quoted with back-quotes: `{name.group(1) if name else 'name'}`; strings with '...'"
