r"""Kernels of LIKE and of regular expressions.

Arrow's engine is RE2, Flink's and Spark's is Java's. An expression has a kernel if it keeps to the syntax to
which both give one meaning: characters, ``\`` before punctuation, ``^``, character classes, groups,
alternatives, and ``*``, ``+``, ``?`` after a character or a class. Not ``.``, ``$``, ``\d``, ``{n}``, lazy
or possessive quantifiers, or a quantifier after a group.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.functions.arrays.api import ArrayCall, Kernel, Value

_PLAIN = r"[A-Za-z0-9 _=/%#@!,;:<>~\"'&-]"
_ESCAPED = r"\\[.?+*()\[\]|/-]"
_IN_CLASS = r"[A-Za-z0-9 _=/%#@!,;:<>~\"'.?+*()|]|&(?!&)"
_CLASS = rf"\[\^?(?:[A-Z]-[A-Z]|[a-z]-[a-z]|[0-9]-[0-9]|{_IN_CLASS})+\]"
_TOKEN = re.compile(rf"(\(\?:|\()|(\))|(\|)|(\^)|((?:{_PLAIN}|{_ESCAPED}|{_CLASS})[*+?]?)(?![*+?{{])")
_GROUP = "found"


def like(call: ArrayCall) -> Kernel | None:
    """LIKE without ESCAPE and ``_``: texts that must stand at the start, at the end or anywhere."""
    pattern = call.literals[1]
    if len(call.literals) > 2 or not isinstance(pattern, str) or "_" in pattern:
        return None
    parts = pattern.split("%")
    if len(parts) == 1:
        return partial(_equals, pattern)
    if len(parts) == 2:
        return partial(_begins_and_ends, parts[0], parts[1])
    if len(parts) == 3 and not parts[0] and not parts[2]:
        return partial(_has, parts[1])
    return None


def starts_with(call: ArrayCall) -> Kernel | None:
    text = call.literals[1]
    return partial(_begins_and_ends, text, "") if isinstance(text, str) else None


def ends_with(call: ArrayCall) -> Kernel | None:
    text = call.literals[1]
    return partial(_begins_and_ends, "", text) if isinstance(text, str) else None


def matches(call: ArrayCall) -> Kernel | None:
    """REGEXP: whether the expression matches somewhere."""
    pattern = call.literals[1]
    shared = _shared(pattern, 0) if isinstance(pattern, str) else None
    return None if shared is None else partial(_matches, shared)


def extract(call: ArrayCall) -> Kernel | None:
    """REGEXP_EXTRACT of a group that takes part in every match; NULL without a match."""
    pattern = call.literals[1]
    group = call.literals[2] if len(call.literals) > 2 else 0
    if not isinstance(pattern, str) or not isinstance(group, int):
        return None
    shared = _shared(pattern, group)
    return None if shared is None else partial(_extract, shared)


def replace(call: ArrayCall) -> Kernel | None:
    """REGEXP_REPLACE by a plain constant text, of an expression that matches no empty text: after a match
    Java's engine finds an empty one at its end, RE2 does not."""
    pattern, new = call.literals[1:]
    if not isinstance(pattern, str) or not isinstance(new, str) or "\\" in new or "$" in new:
        return None
    shared = _shared(pattern, 0)
    if shared is None or pc.match_substring_regex("", shared).as_py():
        return None
    return partial(_replaced, shared, new)


def _equals(expected: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.equal(text, expected)


def _has(substring: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.match_substring(text, substring)


def _begins_and_ends(start: str, end: str, text: pa.Array, *_: Value) -> pa.Array:
    """The two may not overlap."""
    begins, ends = pc.starts_with(text, start), pc.ends_with(text, end)
    if not start or not end:
        return ends if end else begins
    least = len(start.encode()) + len(end.encode())
    return pc.and_(pc.and_(begins, ends), pc.greater_equal(pc.binary_length(text), least))


def _matches(pattern: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.match_substring_regex(text, pattern)


def _replaced(pattern: str, new: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.replace_substring_regex(text, pattern, new)


def _extract(pattern: str, text: pa.Array, *_: Value) -> pa.Array:
    return pc.struct_field(pc.extract_regex(text, pattern), _GROUP)


@dataclass(slots=True)
class _Frame:
    """An open group, or the whole expression; ``optional``: it has alternatives."""

    wanted: bool
    optional: bool = False


def _shared(pattern: str, group: int) -> str | None:
    """RE2's text for ``pattern`` with ``group`` as its only capturing group; None outside the syntax that the
    engines share, or where the group may take no part in a match."""
    parts = [] if group else [f"(?P<{_GROUP}>"]
    frames, around = [_Frame(group == 0)], []
    number = index = 0
    while index < len(pattern):
        token = _TOKEN.match(pattern, index)
        if token is None:
            return None
        index = token.end()
        opened, closed, alternative, _, _ = token.groups()
        if opened:
            number += opened == "("
            is_group = opened == "(" and number == group
            around += frames.copy() if is_group else []
            frames.append(_Frame(is_group))
            parts.append(f"(?P<{_GROUP}>" if is_group else "(?:")
            continue
        if closed and (len(frames) == 1 or pattern[index : index + 1] in ("*", "+", "?", "{")):
            return None
        if closed:
            frames.pop()
        frames[-1].optional |= bool(alternative)
        parts.append(token.group())
    has_group = group == 0 or (0 < group <= number)
    if not pattern or not has_group or len(frames) > 1 or any(f.optional for f in around):
        return None
    text = "".join(parts) + ("" if group else ")")
    return text if _compiles(text) else None


def _compiles(pattern: str) -> bool:
    try:
        _matches(pattern, pa.array([""]))
    except pa.ArrowInvalid:
        return False
    return True
