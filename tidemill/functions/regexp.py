"""Regular expressions: Java's engine in Flink and in Spark, so patterns mean the same.

A pattern that does not compile gives NULL (REGEXP: FALSE) where it is a literal whose fault can be read
off it; otherwise it is an error of the query. Group 0 is the whole match; a group that the pattern does
not have gives NULL; so does one that took no part in the match.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemill.functions.api import ScalarFunction, SparkCall, Translation
from tidemill.functions.arrays import patterns
from tidemill.functions.java_regex import group_count, is_broken, may_skip_groups
from tidemill.functions.sharing import share
from tidemill.functions.signatures import AS_INT, CHARACTER, fixed, nullable, signature
from tidemill.functions.spark_text import each_indexed, quoted
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

_TEXT = nullable(fixed(t.STRING))
_TEXTS = nullable(fixed(t.ArrayType(element=t.STRING)))


def _unless_broken(body: Translation, broken: str = "") -> Translation:
    """``broken`` (default NULL) for a literal pattern that cannot compile."""

    def translate(call: SparkCall) -> str:
        pattern = call.literals[1]
        if isinstance(pattern, str) and is_broken(pattern):
            return broken.format(*call.args) or f"CAST(NULL AS {spark_type(call.result)})"
        return body(call)

    return translate


def _like(call: SparkCall) -> str:
    text, pattern = call.args
    matches = f"({text} RLIKE {pattern})"
    if call.literals[1]:
        return matches
    return f"({matches} AND {pattern} <> '')"


def _replace(call: SparkCall) -> str:
    """The replacement is plain text: '$1' is not a group."""
    text, pattern, new = call.args
    replacement_literal = call.literals[2]
    if isinstance(replacement_literal, str):
        plain = quoted(replacement_literal.replace("\\", "\\\\").replace("$", "\\$"))
    else:
        plain = f"replace(replace({new}, '\\\\', '\\\\\\\\'), '$', '\\\\$')"
    return f"regexp_replace({text}, {pattern}, {plain})"


def _with_group(body: Callable[[str, str, str, bool], str], default: int) -> Translation:
    """``body(text, pattern, group, skips)`` guarded against groups that are not there."""

    def translate(call: SparkCall) -> str:
        text, pattern, *group_argument = call.args
        group = group_argument[0] if group_argument else str(default)
        number = call.literals[2] if group_argument else default
        source = call.literals[1]
        null = f"CAST(NULL AS {spark_type(call.result)})"
        if isinstance(number, int) and (
            number < 0 or (isinstance(source, str) and number > group_count(source))
        ):
            return null
        skips = number != 0 and (not isinstance(source, str) or may_skip_groups(source))
        result = share(text, lambda s: body(s, pattern, group, skips))
        if isinstance(number, int):
            return result
        absent = f"{group} IS NULL OR {group} < 0"
        if isinstance(source, str):
            absent += f" OR {group} > {group_count(source)}"
        return f"CASE WHEN {absent} THEN {null} ELSE {result} END"

    return translate


def _extract(text: str, pattern: str, group: str, skips: bool) -> str:
    """Spark gives '' for no match; only then is it worth asking whether there was one."""
    value = f"regexp_extract({text}, {pattern}, {group})"
    matched = f"{text} RLIKE {pattern}"
    if skips:
        # The text from the first match on; a backreference fails where its group took no part.
        remaining_text = f"regexp_extract({text}, concat('(?:', {pattern}, ')[\\\\s\\\\S]*\\\\z'), 0)"
        took_part = f"{remaining_text} RLIKE concat('\\\\A(?>', {pattern}, ')\\\\', {group})"
        matched = f"{matched} AND ({group} = 0 OR {took_part})"
    return f"CASE WHEN {value} <> '' THEN {value} WHEN {matched} THEN '' END"


def _extract_all(text: str, pattern: str, group: str, skips: bool) -> str:
    values = f"regexp_extract_all({text}, {pattern}, {group})"
    if not skips:
        return values
    whole = f"regexp_extract_all({text}, {pattern}, 0)"
    took_part = f"RLIKE concat('\\\\A(?>', {pattern}, ')\\\\', {group})"
    return each_indexed(
        values, lambda v, i: f"CASE WHEN {v} <> '' OR {group} = 0 OR {whole}[{i}] {took_part} THEN {v} END"
    )


def _instr(call: SparkCall) -> str:
    """The position in UTF-16 units, as Java's matcher tells it."""
    text, pattern = call.args
    return share(f"regexp_instr({text}, {pattern})", lambda p: f"{p} + {_pairs(f'left({text}, {p} - 1)')}")


def _pairs(text: str) -> str:
    """How many characters of ``text`` take two UTF-16 units."""
    return f"length(regexp_replace({text}, '[\\\\x{{0}}-\\\\x{{FFFF}}]', ''))"


def _function(name: str, spark: Translation, *, broken: str = "") -> ScalarFunction:
    """(text, pattern) -> a type by name."""
    result = nullable(fixed(t.STRING if name == "REGEXP_SUBSTR" else t.INT))
    resolve = signature(name, CHARACTER, CHARACTER, result=result)
    return ScalarFunction(name=name, resolve=resolve, spark=_unless_broken(spark, broken))


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="REGEXP",
        resolve=signature("REGEXP", CHARACTER, CHARACTER, result=fixed(t.BOOLEAN)),
        spark=_unless_broken(_like, "CASE WHEN {0} IS NOT NULL THEN FALSE END"),
        arrays=patterns.matches,
    ),
    ScalarFunction(
        name="REGEXP_REPLACE",
        resolve=signature(
            "REGEXP_REPLACE", CHARACTER, CHARACTER, CHARACTER, result=nullable(fixed(t.STRING))
        ),
        spark=_unless_broken(_replace),
        arrays=patterns.replace,
    ),
    ScalarFunction(
        name="REGEXP_EXTRACT",
        resolve=signature("REGEXP_EXTRACT", CHARACTER, CHARACTER, AS_INT, result=_TEXT, optional=1),
        spark=_unless_broken(_with_group(_extract, 0)),
        arrays=patterns.extract,
    ),
    ScalarFunction(
        name="REGEXP_EXTRACT_ALL",
        resolve=signature("REGEXP_EXTRACT_ALL", CHARACTER, CHARACTER, AS_INT, result=_TEXTS, optional=1),
        spark=_unless_broken(_with_group(_extract_all, 1)),
    ),
    _function("REGEXP_SUBSTR", _with_group(_extract, 0)),
    _function("REGEXP_COUNT", lambda call: f"regexp_count({call.args[0]}, {call.args[1]})"),
    _function("REGEXP_INSTR", _instr),
)
