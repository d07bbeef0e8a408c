"""Java's date and time patterns as Spark SQL: reading text by a pattern and writing it.

Flink reads with two classes that differ. ``LENIENT`` (java.text.SimpleDateFormat: TO_DATE, UNIX_TIMESTAMP,
text given to DATE_FORMAT) takes a prefix, any number of digits and fields that overflow into the next
one. ``SMART`` (java.time.DateTimeFormatter: TO_TIMESTAMP) wants the whole text with exact widths, and a
day past the month's end is its last day. Fields that a pattern lacks are those of 1970-01-01 00:00:00.
A letter that cannot be said exactly raises NotSupportedError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.functions.literals import string_literal
from tidemill.functions.sharing import share

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_JAVA_LETTERS = frozenset("GuyDMLdQqYwWEecFaBhKkHmsSAnNVvzOXxZp")
_READ_LETTERS = frozenset("yuMLdDHhKkmsSaE")
_WRITE_LETTERS = frozenset("GyuMLdDQqEFahKkHmsS")
_TEXT_LETTERS = frozenset("MLEQq")
_SAME_FIELD = {"u": "y", "L": "M"}
_QUOTE = "'"


@dataclass(frozen=True, slots=True)
class Token:
    """A run of one pattern letter, or literal text (``letter`` '')."""

    letter: str
    text: str

    @property
    def count(self) -> int:
        return len(self.text)

    @property
    def numeric(self) -> bool:
        named = self.letter in _TEXT_LETTERS and self.count > 2
        return bool(self.letter) and self.letter not in "aE" and not named


def tokens(pattern: str) -> tuple[Token, ...]:
    """The pattern's letters and literal texts; '' inside or outside quotes is an apostrophe."""
    pattern_tokens: list[Token] = []
    for match in re.finditer(r"''|'((?:[^']++|'')*+)'|([A-Za-z])\2*|[^A-Za-z']", pattern):
        text, quoted, letter = match.group(0), match.group(1), match.group(2)
        if letter:
            pattern_tokens.append(Token(letter, text))
        else:
            literal = (
                _QUOTE if text == "''" else (quoted or "").replace("''", "'") if quoted is not None else text
            )
            pattern_tokens.append(Token("", literal))
    return tuple(pattern_tokens)


def _check(parts: tuple[Token, ...], letters: frozenset[str]) -> None:
    for token in parts:
        if token.letter and token.letter not in _JAVA_LETTERS:
            raise ValidationError(f"Unknown pattern letter: {token.letter}")
        wide = token.letter in _TEXT_LETTERS and token.count > 4
        if token.letter and (token.letter not in letters or wide):
            raise NotSupportedError(f"The pattern letters '{token.text}' are not supported in date formats")


def spark_pattern(pattern: str) -> str:
    """The pattern as Spark's date_format takes it."""
    parts = tokens(pattern)
    _check(parts, _WRITE_LETTERS)
    return "".join(
        (_SAME_FIELD.get(p.letter, p.letter) * p.count if p.letter != "L" else p.text)
        if p.letter
        else _quoted(p.text)
        for p in parts
    )


def _quoted(text: str) -> str:
    return _QUOTE + text.replace("'", "''") + _QUOTE if re.search("[A-Za-z'\\[\\]{}#]", text) else text


Field = Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True)
class Reader:
    """How one Java class reads: the regular expression of a token, how it ends, how fields combine."""

    token: Callable[[Token, bool], str]
    end: str
    year: Callable[[Token, str], str]
    combine: Callable[[Mapping[str, str]], str]


def read_sql(text: str, pattern: str, reader: Reader) -> str:
    """Spark SQL of the TIMESTAMP_NTZ that ``text`` says under ``pattern``; NULL where it does not fit."""
    parts = tokens(pattern)
    _check(parts, _READ_LETTERS)
    pieces = [
        reader.token(p, i + 1 < len(parts) and parts[i + 1].numeric) if p.letter else re.escape(p.text)
        for i, p in enumerate(parts)
    ]
    expression = string_literal("(?s)^" + "".join(pieces) + reader.end)
    fields = [p for p in parts if p.letter]
    groups = string_literal("|".join(f"${n}" for n in range(1, len(fields) + 1)))

    def body(s: str) -> str:
        split = f"split(regexp_replace({s}, {expression}, {groups}), '[|]')"
        value = share(split, lambda v: reader.combine(_values(fields, v, reader)))
        return f"IF({s} RLIKE {expression}, {value}, NULL)"

    return share(text, body)


def _values(fields: list[Token], array: str, reader: Reader) -> dict[str, str]:
    """Spark SQL per field letter of what was read."""
    by_letter: dict[str, str] = {}
    for index, token in enumerate(fields):
        item = f"{array}[{index}]"
        letter = _SAME_FIELD.get(token.letter, token.letter)
        if letter == "y":
            by_letter["y"] = reader.year(token, item)
        elif letter in "aE":
            by_letter[letter] = item
        elif token.numeric:
            by_letter[letter] = item if letter == "S" else f"CAST({item} AS INT)"
        else:
            short = ", ".join(f"'{m[:3].lower()}'" for m in _MONTHS)
            by_letter[letter] = f"array_position(array({short}), lower(substring({item}, 1, 3)))"
    return by_letter


def _names(token: Token) -> str:
    """The expression for a month or weekday name, or AM and PM."""
    if token.letter == "a":
        return "AM|PM"
    names = _DAYS if token.letter == "E" else _MONTHS
    both = names if token.count > 3 else tuple(n[:3] for n in names)
    return "|".join(both)


def _hour(fields: Mapping[str, str]) -> str:
    """Hour of the day from H, k, or h and K with AM/PM."""
    if "H" in fields:
        return fields["H"]
    if "k" in fields:
        return f"({fields['k']} % 24)"
    half = fields.get("h") or fields.get("K")
    if half is None:
        return "0"
    noon = f"IF(upper({fields['a']}) = 'PM', 12, 0)" if "a" in fields else "0"
    return f"({half} % 12 + {noon})"


def _lenient_token(token: Token, next_is_numeric: bool) -> str:
    if token.numeric:
        return f"([0-9]{{{token.count}}})" if next_is_numeric else " *([0-9]+)"
    full, short = (_names(Token(token.letter, token.letter * n)) for n in (4, 3))
    return f"(?i:({full}|{short}))"


def _lenient_year(token: Token, item: str) -> str:
    """Two digits mean the year within 80 years before and 20 after today."""
    if token.count > 2:
        return f"CAST({item} AS INT)"
    near = f"IF(2000 + CAST({item} AS INT) > year(current_date()) + 20, 1900, 2000) + CAST({item} AS INT)"
    return f"IF(length({item}) = 2, {near}, CAST({item} AS INT))"


def _lenient_combine(fields: Mapping[str, str]) -> str:
    year, month = fields.get("y", "1970"), fields.get("M", "1")
    day = fields.get("D") or fields.get("d", "1")
    date = f"date_add(add_months(make_date({year}, 1, 1), CAST({month} - 1 AS INT)), {day} - 1)"
    if not set(fields) & set("HhKkmsS"):
        return f"CAST({date} AS TIMESTAMP_NTZ)"
    seconds = f"({_hour(fields)} * 3600L + {fields.get('m', '0')} * 60L + {fields.get('s', '0')})"
    millis = f"{seconds} * 1000 + CAST({fields['S']} AS INT)" if "S" in fields else f"{seconds} * 1000"
    return f"timestampadd(MICROSECOND, ({millis}) * 1000, CAST({date} AS TIMESTAMP_NTZ))"


def _smart_token(token: Token, next_is_numeric: bool) -> str:
    if not token.numeric:
        return f"({_names(token)})"
    if token.letter == "S" or token.count > 1 or next_is_numeric:
        return f"([0-9]{{{token.count}}})"
    return "([0-9]+)" if token.letter in "yu" else "([0-9]{1,3})"


def _smart_year(token: Token, item: str) -> str:
    return f"(2000 + CAST({item} AS INT))" if token.count == 2 else f"CAST({item} AS INT)"


def _smart_combine(fields: Mapping[str, str]) -> str:
    year, month, day = fields.get("y", "1970"), fields.get("M", "1"), fields.get("d", "1")
    if "D" in fields:
        date = f"date_add(make_date({year}, 1, 1), {fields['D']} - 1)"
        year, month, day = (f"{part}({date})" for part in ("year", "month", "day"))
    elif "d" in fields:
        last = f"day(last_day(make_date({year}, {month}, 1)))"
        day = f"IF({day} <= 31, least({day}, {last}), NULL)"
    # An hour of the half day says nothing without AM or PM.
    hour = _hour(fields) if "a" in fields or set(fields) & set("Hk") else "0"
    second = f"CAST({fields.get('s', '0')} AS DECIMAL(16, 6))"
    if "S" in fields:
        second = f"({second} + CAST(concat('0.', {fields['S']}) AS DECIMAL(16, 6)))"
    return f"try_make_timestamp_ntz({year}, {month}, {day}, {hour}, {fields.get('m', '0')}, {second})"


LENIENT = Reader(token=_lenient_token, end=".*$", year=_lenient_year, combine=_lenient_combine)
SMART = Reader(token=_smart_token, end="$", year=_smart_year, combine=_smart_combine)
