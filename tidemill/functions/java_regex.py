"""What can be told about a Java regular expression by reading it: its groups, whether it can compile.

Java's engine runs the pattern inside Spark; this module only answers what the SQL functions must know
before that. ``is_broken`` finds unbalanced brackets, quantifiers that have nothing to repeat or count
backwards, and escapes and groups that Java does not know; other invalid patterns are errors of the engine at
run time.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[|\]|\(\?<(?![=!])|\(\?|\(|\)|.", re.DOTALL)


def group_count(pattern: str) -> int:
    """The number of capturing groups."""
    return sum(token in ("(", "(?<") for token in _outside_brackets(pattern))


def may_skip_groups(pattern: str) -> bool:
    """Whether a match can leave a group without a value: an alternative or an optional group."""
    return bool(re.search(r"\||\)[?*]|\)\{0", pattern))


def is_broken(pattern: str) -> bool:
    """Whether Java refuses the pattern, as far as reading shows."""
    depth = 0
    tokens = _outside_brackets(pattern)
    previous = ""
    for index, token in enumerate(tokens):
        if token in ("unclosed", "\\") or _UNKNOWN_ESCAPE.fullmatch(token):
            return True
        depth += (token.startswith("(")) - (token == ")")
        if depth < 0 or (token == "(?" and not _INLINE.match("".join(tokens[index + 1 :]))):
            return True
        if token in ("*", "+", "?") and (
            previous in _NOTHING_BEFORE or (token + previous) in ("**", "*+", "*?")
        ):
            return True
        if token == "{" and previous not in _BRACED and not _is_quantifier(tokens[index + 1 :]):
            return True
        previous = token
    return depth != 0


_UNKNOWN_ESCAPE = re.compile(r"\\[gijlmoqyCFIJKLMOTUY]")
_INLINE = re.compile(r"[:=!>idmsuxU-]|<[=!]")
_NOTHING_BEFORE = ("", "(", "|")
_BRACED = (r"\p", r"\P", r"\x", r"\N", r"\b")
_COUNTS = re.compile(r"(\d+)(?:(,)(\d*))?}")


def _is_quantifier(after: list[str]) -> bool:
    """Whether a brace before these is ``{n}``, ``{n,}`` or ``{n,m}``."""
    counts = _COUNTS.match("".join(after))
    if counts is None:
        return False
    return not counts.group(3) or int(counts.group(3)) >= int(counts.group(1))


def _outside_brackets(pattern: str) -> list[str]:
    """Tokens with each character class as one '[]' token; 'unclosed' for a class without an end."""
    out: list[str] = []
    depth = 0
    first = False
    for token in _TOKEN.findall(pattern):
        if depth:
            depth += (token == "[") - (token == "]" and not first)
            first = token == "[" or (first and token == "^")
            if depth == 0:
                out.append("[]")
        elif token == "[":
            depth, first = 1, True
        else:
            out.append(token)
    return [*out, "unclosed"] if depth else out
