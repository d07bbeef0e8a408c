"""What can be told about a Java regular expression by reading it: its groups, whether it can compile.

Java's engine runs the pattern inside Spark; this module only answers what the SQL functions must know
before that. ``is_broken`` finds unbalanced brackets, dangling quantifiers and a trailing backslash; other
invalid patterns are errors of the engine at run time.
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
    previous = ""
    for token in _outside_brackets(pattern):
        if token == "unclosed" or token == "\\":
            return True
        depth += (token.startswith("(")) - (token == ")")
        if depth < 0 or (token in ("*", "+", "?") and previous in ("", "(", "|")):
            return True
        previous = token
    return depth != 0


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
