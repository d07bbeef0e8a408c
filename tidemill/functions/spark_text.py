"""Building blocks of Spark SQL text: string literals, lambdas with safe names, values bound once.

Spark SQL has no LET. ``bind`` spells one as a one-element ``transform``, so that an argument's text
appears once however often it is used; a column or a literal is repeated instead, which stays in
compiled code. A lambda variable is named after a digest of what it runs over: two nested lambdas share
a name only if they bind the same text, so no argument's text is ever captured by an enclosing lambda.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from zlib import crc32

from tidemill.functions.api import Translation

_ASTRAL = r"[\x{10000}-\x{10FFFF}]"
_FILLER = "\ufdd1"
_SIMPLE = re.compile(
    r"`(?:[^`]++|``)*+`|'(?:[^'\\]++|\\.)*+'|-?[0-9]+[LSY]?|\w+_[0-9a-f]{8}|NULL|TRUE|FALSE", re.DOTALL
)


LONGEST_TEXT = 1 << 25
"""Characters of a text that a function may make out of a short one. Java has room for some thirty times as
many, but not in each of a machine's tasks: without a limit one row ends Spark's JVM."""


def of_bounded_length(length: str, text: str) -> str:
    """``text``; an error if its length, the Spark SQL number ``length``, would be too much."""
    return (
        f"CASE WHEN {length} > {LONGEST_TEXT} "
        f"THEN raise_error('a text of more than {LONGEST_TEXT} characters') ELSE {text} END"
    )


def quoted(text: str) -> str:
    """``text`` as a Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def bind(value: str, body: Callable[[str], str]) -> str:
    """``body`` of a name for ``value``; ``value`` is evaluated once per row."""
    if _SIMPLE.fullmatch(value):
        return body(value)
    name = _name("v", value)
    return f"transform(array({value}), {name} -> {body(name)})[0]"


def each(array: str, body: Callable[[str], str], role: str = "e") -> str:
    """The array of ``body`` of every element; ``role`` tells nested lambdas over one array apart."""
    name = _name(role, array)
    return f"transform({array}, {name} -> {body(name)})"


def each_indexed(array: str, body: Callable[[str, str], str], role: str = "e") -> str:
    """As ``each``; ``body`` also gets the element's index, from 0."""
    name, index = _name(role, array), _name("i" + role, array)
    return f"transform({array}, ({name}, {index}) -> {body(name, index)})"


def keep(array: str, condition: Callable[[str], str], role: str = "f") -> str:
    """The elements of ``array`` for which ``condition`` is TRUE, in order."""
    name = _name(role, array)
    return f"filter({array}, {name} -> {condition(name)})"


def fold(
    array: str, zero: str, step: Callable[[str, str], str], finish: Callable[[str], str] | None = None
) -> str:
    """``step(accumulator, element)`` over ``array`` from ``zero``, then ``finish`` of the accumulator."""
    accumulator, element = _name("a", array + zero), _name("x", array + zero)
    end = f", {accumulator} -> {finish(accumulator)}" if finish else ""
    return f"aggregate({array}, {zero}, ({accumulator}, {element}) -> {step(accumulator, element)}{end})"


def in_utf16(texts: tuple[str, ...], body: Callable[..., str]) -> str:
    """``body`` of ``texts`` with lengths and positions in UTF-16 units, as in Java's strings.

    While ``body`` works, a filler follows each character beyond the basic plane; texts without such
    characters are left alone. A pair is never split: the character stays with its first unit.
    """
    beyond = " OR ".join(f"{text} RLIKE {quoted(_ASTRAL)}" for text in texts)
    wide = (f"regexp_replace({text}, {quoted(f'({_ASTRAL})')}, {quoted(f'$1{_FILLER}')})" for text in texts)
    return f"CASE WHEN {beyond} THEN replace({body(*wide)}, {quoted(_FILLER)}, '') ELSE {body(*texts)} END"


def _name(role: str, text: str) -> str:
    return f"{role}_{crc32(text.encode()):08x}"


def template(text: str) -> Translation:
    """A translation that fills argument texts into ``text``: {0}, {1}, ... and {all}."""
    return lambda call: text.format(*call.args, all=", ".join(call.args))
