"""PATTERN (...): parses the text between the parentheses into a sequence of variables with quantifiers.

    (A B+? C{2})    -> A once, B at least once and reluctant, C twice

Flink's limits hold: no alternatives, no quantified groups, no exclusions, and each name once. A pattern must
not match zero rows, and must not end with a greedy quantifier, because such a match would never end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemill.errors import NotSupportedError, Position, SqlSyntaxError, ValidationError
from tidemill.plan.patterns import PatternVariable

_TOKENS = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<name>[^\W\d]\w*)|(?P<exclusion>\{-|-\})"
    r"|(?P<range>\{\s*\d*\s*(?:,\s*\d*\s*)?\})|(?P<symbol>\S))"
)
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_REFUSED = {
    "|": "Alternation (|) in PATTERN is not supported: CEP doesn't support branching patterns",
    "^": "The anchor ^ in PATTERN is not supported",
    "$": "The anchor $ in PATTERN is not supported",
    "{-": "Exclusion ({- -}) in PATTERN is not supported",
}
_EMPTY = (
    "Patterns that can produce empty matches are not supported."
    " There must be at least one non-optional state."
)
_GREEDY_END = (
    "Greedy quantifiers are not allowed as the last element of a Pattern yet."
    " Finish your pattern with either a simple variable or reluctant quantifier."
)


def variables(text: str, position: Position | None) -> tuple[PatternVariable, ...]:
    """The pattern's variables in order. Errors have the position ``position``."""
    reader = _Reader(_tokens(text, position), position)
    sequence = tuple(reader.sequence())
    if reader.at < len(reader.tokens):
        raise SqlSyntaxError(f"PATTERN: unexpected '{reader.tokens[reader.at]}'", position=position)
    _check(sequence, position)
    return sequence


def _tokens(text: str, position: Position | None) -> list[str]:
    tokens = []
    for token in _TOKENS.finditer(text):
        symbol = token.group().strip()
        if symbol in _REFUSED:
            raise NotSupportedError(_REFUSED[symbol], position=position)
        tokens.append(symbol)
    return tokens


@dataclass(slots=True)
class _Reader:
    tokens: list[str]
    position: Position | None
    at: int = 0

    def sequence(self) -> list[PatternVariable]:
        terms: list[PatternVariable] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != ")":
            terms += self._term()
        return terms

    def _term(self) -> list[PatternVariable]:
        token = self._take()
        if token == "(":
            inner = self.sequence()
            if self._take() != ")":
                raise SqlSyntaxError("PATTERN: ')' is missing", position=self.position)
            if self._quantifier() is not None:
                raise NotSupportedError(
                    "A quantifier on a group of pattern variables is not supported",
                    position=self.position,
                    hint="Quantify single variables.",
                )
            return inner
        if token.upper() == "PERMUTE":
            raise NotSupportedError("PERMUTE in PATTERN is not supported", position=self.position)
        if token[0] != "`" and not (token[0].isalpha() or token[0] == "_"):
            raise SqlSyntaxError(
                f"PATTERN: unexpected '{token}'", position=self.position, expected=("a variable", "(")
            )
        name = token[1:-1].replace("``", "`") if token[0] == "`" else token
        bounds = self._quantifier()
        if bounds is None:
            return [PatternVariable(name=name)]
        least, most = bounds
        reluctant = self._is("?")
        if reluctant and bounds == (0, 1):
            raise NotSupportedError(
                "Reluctant optional variables are not supported yet.", position=self.position
            )
        return [PatternVariable(name=name, least=least, most=most, greedy=not reluctant)]

    def _quantifier(self) -> tuple[int, int | None] | None:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if token in _QUANTIFIERS:
            self.at += 1
            return _QUANTIFIERS[token]
        if not token.startswith("{"):
            return None
        self.at += 1
        low, comma, high = token[1:-1].replace(" ", "").partition(",")
        least = int(low or 0)
        most = (int(high) if high else None) if comma else least
        if (not low and not high) or most == 0 or (most is not None and most < least):
            raise ValidationError(f"PATTERN: {token} is not a number of rows", position=self.position)
        return least, most

    def _is(self, symbol: str) -> bool:
        matches = self.at < len(self.tokens) and self.tokens[self.at] == symbol
        self.at += matches
        return matches

    def _take(self) -> str:
        if self.at == len(self.tokens):
            raise SqlSyntaxError("PATTERN ends too early", position=self.position)
        self.at += 1
        return self.tokens[self.at - 1]


def _check(sequence: tuple[PatternVariable, ...], position: Position | None) -> None:
    names = [v.name for v in sequence]
    for name in names:
        if names.count(name) > 1:
            message = f"Duplicate pattern name: {name}. Names must be unique."
            raise NotSupportedError(message, position=position)
    if all(v.least == 0 for v in sequence):
        raise NotSupportedError(_EMPTY, position=position)
    last = sequence[-1]
    if last.greedy and last.most != last.least and (last.least, last.most) != (0, 1):
        raise NotSupportedError(_GREEDY_END, position=position)
