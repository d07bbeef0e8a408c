"""LIKE and SIMILAR TO.

LIKE has no escape character unless ESCAPE names one. ``_`` is one code point, ``%`` any run. SIMILAR TO
follows the SQL standard's regular expressions in Calcite's reading of them, in which a plain '.' and '^'
keep the meaning they have for Java; the pattern must be a literal.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.signatures import CHARACTER, fixed, signature
from tidemill.functions.spark_text import quoted
from tidemill.types import logical as t

_SIMILAR_SPECIALS = "[]()|^-+*_%?{}"
_JAVA_SPECIALS = "[]()|^-+*?{}$\\."
_CLASSES = {
    "[:alpha:]": r"\p{Alpha}",
    "[:upper:]": r"\p{Upper}",
    "[:lower:]": r"\p{Lower}",
    "[:digit:]": r"\d",
    "[:space:]": " ",
    "[:whitespace:]": r"\s",
    "[:alnum:]": r"\p{Alnum}",
}


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
    escape = _escape_of("LIKE", call)
    if escape:
        return f"({text} LIKE {pattern} ESCAPE {quoted(escape)})"
    # Spark's escape character is a backslash unless told otherwise; doubled it stands for itself.
    literal = call.literals[1]
    plain = quoted(literal.replace("\\", "\\\\")) if isinstance(literal, str) else None
    return f"({text} LIKE {plain or f'replace({pattern}, {quoted(chr(92))}, {quoted(chr(92) * 2)})'})"


def _escape_of(name: str, call: SparkCall) -> str:
    escape = call.literals[2] if len(call.args) > 2 else ""
    if not isinstance(escape, str):
        raise NotSupportedError(f"{name} with an ESCAPE that is not a literal")
    return escape


def _similar(call: SparkCall) -> str:
    pattern = call.literals[1]
    if not isinstance(pattern, str):
        raise NotSupportedError("SIMILAR TO with a pattern that is not a literal")
    whole = rf"\A(?:{java_pattern(pattern, _escape_of('SIMILAR TO', call))})\z"
    return f"({call.args[0]} RLIKE {quoted(whole)})"


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
        named = next((n for n in _CLASSES if pattern[position:].lower().startswith(n)), "")
        if char == "]":
            return "".join(out) + "]", position
        if escape and char == escape:
            position += 1
            out.append(_escaped(pattern, position, escape))
        elif named:
            out.append(_CLASSES[named])
            position += len(named) - 1
        elif char in _SIMILAR_SPECIALS and char not in "-^":
            raise _invalid(pattern)
        else:
            out.append("\\\\" if char == "\\" else char)
        position += 1
    raise _invalid(pattern)


def _escaped(pattern: str, position: int, escape: str) -> str:
    char = pattern[position : position + 1]
    if not char or (char not in _SIMILAR_SPECIALS and char != escape):
        raise SignatureError(f"Invalid escape sequence '{pattern}', {position - 1}")
    return f"\\{char}" if char in _JAVA_SPECIALS else char


def _invalid(pattern: str) -> SignatureError:
    return SignatureError(f"Invalid regular expression '{pattern}'")


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="LIKE", resolve=_resolve_like, spark=_like),
    ScalarFunction(name="SIMILAR TO", resolve=_resolve_similar, spark=_similar),
)
