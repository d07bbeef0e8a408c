"""Cuts CSV text into records one by one, by the rules of Flink's parser (Jackson).

This reader is the authority on records; wherever the vectorised reader is used, it must agree with this one.
Quotes count only at the very start of a field; a doubled quote within it is one quote; only blanks may come
between the closing quote and the delimiter. Cost: about 2 µs a field. The decoder uses it for blocks that are
not plain, and to find the line of a malformed record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.connectors.formats.csv.dialect import Dialect

_COMMENT = re.compile(r"[ \t]*#")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


@dataclass(frozen=True, slots=True)
class Record:
    """``line`` counts from 0 within the text. If ``error`` is not empty, it says why ``fields`` are
    invalid."""

    fields: list[str]
    line: int
    error: str = ""


class RecordReader:
    """Iterates the records of ``text``; ``arity`` is the most fields a record may have."""

    def __init__(self, text: str, dialect: Dialect, arity: int) -> None:
        self._text = text
        self._dialect = dialect
        self._arity = arity
        self._at = 0
        self._line = 0
        stops = re.escape(dialect.delimiter) + re.escape(dialect.escape) + r"\r\n"
        self._plain = re.compile(f"[^{stops}]*")
        inside = re.escape(dialect.quote) + re.escape(dialect.escape)
        self._quoted = re.compile(f"[^{inside}]*") if dialect.quote else None

    def __iter__(self) -> Iterator[Record]:
        while self._at < len(self._text):
            if self._dialect.comments and self._is_comment():
                self._skip_line()
            else:
                yield self._record()

    def _is_comment(self) -> bool:
        return _COMMENT.match(self._text, self._at) is not None

    def _record(self) -> Record:
        line, fields = self._line, []
        while True:
            try:
                fields.append(self._field())
            except ValueError as e:
                self._skip_line()
                return Record(fields, line, str(e))
            if self._peek() != self._dialect.delimiter:
                break
            self._at += 1
        self._end_of_line()
        if len(fields) == self._arity + 1 and not fields[-1]:
            fields.pop()  # one delimiter at the end is allowed
        if len(fields) > self._arity:
            extra = fields[self._arity]
            return Record(
                fields,
                line,
                f"Too many entries: expected at most {self._arity}"
                f' (value #{self._arity} ({len(extra)} chars) "{extra}")',
            )
        return Record(fields, line)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _field(self) -> str:
        if self._quoted is not None and self._peek() == self._dialect.quote:
            return self._quoted_field(self._quoted)
        parts = []
        while True:
            match = self._plain.match(self._text, self._at)
            assert match is not None
            parts.append(match.group())
            self._at = match.end()
            if not self._dialect.escape or self._peek() != self._dialect.escape:
                return "".join(parts)
            parts.append(self._escaped())

    def _escaped(self) -> str:
        char = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        return _ESCAPES.get(char, char)

    def _quoted_field(self, inside: re.Pattern[str]) -> str:
        quote, parts = self._dialect.quote, []
        self._at += 1
        while True:
            match = inside.match(self._text, self._at)
            assert match is not None
            parts.append(match.group())
            self._line += match.group().count("\n")
            self._at = match.end()
            if self._at >= len(self._text):
                raise ValueError("Missing closing quote for value")
            if self._peek() != quote:
                parts.append(self._escaped())
            elif self._text[self._at + 1 : self._at + 2] == quote:
                parts.append(quote)
                self._at += 2
            else:
                self._at += 1
                self._after_quote()
                return "".join(parts)

    def _after_quote(self) -> None:
        while self._peek() == " ":
            self._at += 1
        if self._peek() not in ("", "\r", "\n", self._dialect.delimiter):
            raise ValueError(
                f"Unexpected character ('{self._peek()}'): Expected column separator character"
                f" ('{self._dialect.delimiter}') or end-of-line"
            )

    def _end_of_line(self) -> None:
        if self._text.startswith("\r\n", self._at):
            self._at += 1
        self._at += 1
        self._line += 1

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1
        self._line += 1
