"""Java regular expressions of patterns that are known with the row alone, as Spark SQL text.

A pattern is cut into its parts (an escape and what it stands before, a bracket expression, any other code
point), each part is translated, and the translations are joined. What ``patterns`` refuses in a literal fails
here when the row comes, in the same words.
"""

from __future__ import annotations

from tidemill.functions.spark_text import bind, each, quoted

SIMILAR_SPECIALS = "[]()|^-+*_%?{}"
_ESCAPED, _NEVER = "\ufdd1", "(?!)"
_ITSELF = r"\\$0"
JAVA_SPECIAL = r"[\[\]()|^\-+*?{}$\\.]"
CLASSES = {
    "[:alpha:]": r"\p{Alpha}",
    "[:upper:]": r"\p{Upper}",
    "[:lower:]": r"\p{Lower}",
    "[:digit:]": r"\d",
    "[:space:]": " ",
    "[:whitespace:]": r"\s",
    "[:alnum:]": r"\p{Alnum}",
}
_NAMED = r"(?i:\[:(?:alpha|upper|lower|digit|space|whitespace|alnum):\])"


def like_regex(pattern: str, escape: str) -> str:
    """Of a LIKE pattern and its escape character, both Spark SQL texts."""
    return bind(escape, lambda e: bind(pattern, lambda p: _checked(e, _like(p, e))))


def similar_regex(pattern: str, escape: str | None) -> str:
    """Of a SIMILAR TO pattern and its escape character, if there is one."""
    if escape is None:
        return bind(pattern, lambda p: _similar(p, None))
    return bind(escape, lambda e: bind(pattern, lambda p: _checked(e, _similar(p, e))))


def _checked(escape: str, text: str) -> str:
    error = f"raise_error(concat('Invalid escape character ', chr(39), {escape}, chr(39)))"
    return f"CASE WHEN char_length({escape}) <> 1 THEN {error} ELSE {text} END"


def _parts(text: str, escape: str | None, form: str) -> str:
    """The parts of ``text`` that the regular expression ``form`` finds; ``_ESCAPED`` in it is an escape."""
    if escape is None:
        return f"regexp_extract_all({text}, {quoted(form.replace(_ESCAPED, _NEVER))}, 0)"
    start, end = quoted(chr(92) + "Q"), quoted(chr(92) + "E.")
    regex = f"replace({quoted(form)}, {quoted(_ESCAPED)}, concat({start}, {escape}, {end}))"
    return f"regexp_extract_all({text}, {regex}, 0)"


def _joined(parts: str) -> str:
    return f"array_join({parts}, '')"


def _like(pattern: str, escape: str) -> str:
    def part(x: str) -> str:
        return (
            f"CASE WHEN startswith({x}, {escape}) THEN {_escaped(x, escape, pattern, ('%', '_'))} "
            f"WHEN {x} = '_' THEN '(?s:.)' WHEN {x} = '%' THEN '(?s:.*)' ELSE {_plain(x)} END"
        )

    return _joined(each(_parts(pattern, escape, f"(?s){_ESCAPED}|."), part))


def _similar(pattern: str, escape: str | None) -> str:
    bracket = rf"\[(?>{_ESCAPED}|{_NAMED}|[^\]])*+\]"

    def part(x: str) -> str:
        escaped = "" if escape is None else _when_escaped(x, escape, pattern)
        return (
            f"CASE {escaped}WHEN {x} LIKE '[%]' THEN {_bracket(x, escape, pattern)} "
            f"WHEN {x} IN ('[', ']') THEN {_invalid(pattern)} WHEN {x} = '_' THEN '.' "
            rf"WHEN {x} = '%' THEN '(?s:.*)' WHEN {x} IN ('$', {quoted(chr(92))}) "
            rf"THEN concat({quoted(chr(92))}, {x}) ELSE {x} END"
        )

    return _joined(each(_parts(pattern, escape, f"(?s){_ESCAPED}|{bracket}|."), part))


def _bracket(text: str, escape: str | None, pattern: str) -> str:
    """A bracket expression: classes by name, escapes, code points that are not special."""
    specials = ", ".join(quoted(c) for c in SIMILAR_SPECIALS if c not in "-^")

    def part(x: str) -> str:
        escaped = "" if escape is None else _when_escaped(x, escape, pattern)
        return (
            f"CASE {escaped}{_named(x)} WHEN {x} IN ({specials}) THEN {_invalid(pattern)} "
            f"WHEN {x} = {quoted(chr(92))} THEN {quoted(chr(92) * 2)} ELSE {x} END"
        )

    within = f"substring({text}, 2, char_length({text}) - 2)"
    return f"concat('[', {_joined(each(_parts(within, escape, f'(?s){_ESCAPED}|{_NAMED}|.'), part))}, ']')"


def _named(part: str) -> str:
    return " ".join(
        f"WHEN lower({part}) = {quoted(name)} THEN {quoted(java)}" for name, java in CLASSES.items()
    )


def _when_escaped(part: str, escape: str, pattern: str) -> str:
    return f"WHEN startswith({part}, {escape}) THEN {_escaped(part, escape, pattern, SIMILAR_SPECIALS)} "


def _escaped(part: str, escape: str, pattern: str, allowed: str | tuple[str, ...]) -> str:
    """The character behind the escape, which must be special, or the escape itself."""
    char = f"substring({part}, 2)"
    escapable = ", ".join(map(quoted, allowed))
    error = f"raise_error(concat('Invalid escape sequence ', chr(39), {pattern}, chr(39)))"
    return f"CASE WHEN {char} IN ({escapable}, {escape}) THEN {_plain(char)} ELSE {error} END"


def _plain(char: str) -> str:
    """A character that stands for itself."""
    return f"regexp_replace({char}, {quoted(JAVA_SPECIAL)}, {quoted(_ITSELF)})"


def _invalid(pattern: str) -> str:
    return f"raise_error(concat('Invalid regular expression ', chr(39), {pattern}, chr(39)))"
