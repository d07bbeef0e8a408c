"""LIKE and SIMILAR TO.

LIKE has no escape character unless ESCAPE names one. ``_`` is one code point, ``%`` any run. SIMILAR TO
follows the SQL standard's regular expressions in Calcite's reading of them, in which a plain '.' and '^'
keep the meaning they have for Java. Patterns that are no literals are translated row by row
(``pattern_text``).
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import patterns
from tidemill.functions.pattern_text import CLASSES, SIMILAR_SPECIALS, like_regex, similar_regex
from tidemill.functions.signatures import CHARACTER, fixed, signature
from tidemill.functions.spark_text import quoted
from tidemill.types import logical as t

_JAVA_SPECIALS = "[]()|^-+*?{}$\\."


def _resolve(name: str, arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    forms = f"{name}(<STRING>, <STRING>, <STRING>)"
    resolved = signature(
        name, CHARACTER, CHARACTER, CHARACTER, result=fixed(t.BOOLEAN), optional=1, forms=forms
    )(arguments, options)
    escape = arguments[2].literal if len(arguments) > 2 else ""
    if len(arguments) > 2 and arguments[2].is_literal and len(str(escape)) > 1:
        raise SignatureError(f"Invalid escape character '{escape}'")
    pattern = arguments[1].literal
    if isinstance(pattern, str) and isinstance(escape, str) and escape and name == "LIKE":
        _check_like(pattern, escape)
    return resolved


def _check_like(pattern: str, escape: str) -> None:
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            following = pattern[position + 1 : position + 2]
            if following not in ("%", "_", escape):
                raise SignatureError(f"Invalid escape sequence '{pattern}', {position}")
            position += 1
        position += 1


def _resolve_like(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    return _resolve("LIKE", arguments, options)


def _resolve_similar(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    resolved = _resolve("SIMILAR TO", arguments, options)
    pattern = arguments[1].literal
    if isinstance(pattern, str):
        escape = arguments[2].literal if len(arguments) > 2 else ""
        java_pattern(pattern, str(escape))
    return resolved


def _like(call: SparkCall) -> str:
    text, pattern = call.args[:2]
    escape = call.literals[2] if len(call.args) > 2 else ""
    if not isinstance(escape, str):
        return f"({text} RLIKE {_whole(like_regex(pattern, call.args[2]))})"
    if escape:
        return f"({text} LIKE {pattern} ESCAPE {quoted(escape)})"
    # Spark's escape character is a backslash unless told otherwise; doubled it stands for itself.
    literal = call.literals[1]
    plain = quoted(literal.replace("\\", "\\\\")) if isinstance(literal, str) else None
    return f"({text} LIKE {plain or f'replace({pattern}, {quoted(chr(92))}, {quoted(chr(92) * 2)})'})"


def _whole(regex: str) -> str:
    """The Spark SQL text ``regex``, of a whole text."""
    return f"concat({quoted(chr(92) + 'A(?:')}, {regex}, {quoted(')' + chr(92) + 'z')})"


def _similar(call: SparkCall) -> str:
    text, pattern = call.args[:2]
    literal_pattern, escape = call.literals[1], call.literals[2] if len(call.args) > 2 else ""
    if isinstance(literal_pattern, str) and isinstance(escape, str):
        whole = rf"\A(?:{java_pattern(literal_pattern, escape)})\z"
        return f"({text} RLIKE {quoted(whole)})"
    computed = similar_regex(pattern, call.args[2] if len(call.args) > 2 and escape != "" else None)
    return f"({text} RLIKE {_whole(computed)})"


def java_pattern(pattern: str, escape: str) -> str:
    """The Java regular expression of a SIMILAR TO pattern; SignatureError where it is not one."""
    out: list[str] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if escape and char == escape:
            out.append(_escaped(pattern, position + 1, escape))
            position += 1
        elif char == "[":
            text, position = _enumeration(pattern, position, escape)
            out.append(text)
        elif char == "]":
            raise _invalid(pattern)
        else:
            out.append({"_": ".", "%": "(?s:.*)", "\\": r"\\", "$": r"\$"}.get(char, char))
        position += 1
    return "".join(out)


def _enumeration(pattern: str, start: int, escape: str) -> tuple[str, int]:
    """The bracket expression at ``start`` and the position of its end."""
    out = ["["]
    position = start + 1
    while position < len(pattern):
        char = pattern[position]
        named = next((n for n in CLASSES if pattern[position:].lower().startswith(n)), "")
        if char == "]":
            return "".join(out) + "]", position
        if escape and char == escape:
            position += 1
            out.append(_escaped(pattern, position, escape))
        elif named:
            out.append(CLASSES[named])
            position += len(named) - 1
        elif char in SIMILAR_SPECIALS and char not in "-^":
            raise _invalid(pattern)
        else:
            out.append("\\\\" if char == "\\" else char)
        position += 1
    raise _invalid(pattern)


def _escaped(pattern: str, position: int, escape: str) -> str:
    char = pattern[position : position + 1]
    if not char or (char not in SIMILAR_SPECIALS and char != escape):
        raise SignatureError(f"Invalid escape sequence '{pattern}', {position - 1}")
    return f"\\{char}" if char in _JAVA_SPECIALS else char


def _invalid(pattern: str) -> SignatureError:
    return SignatureError(f"Invalid regular expression '{pattern}'")


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="LIKE", resolve=_resolve_like, spark=_like, arrays=patterns.like),
    ScalarFunction(name="SIMILAR TO", resolve=_resolve_similar, spark=_similar),
)
