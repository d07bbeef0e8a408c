"""String functions: case, length, trimming, padding, cutting, replacing, building.

Positions and lengths count code points, but Java's UTF-16 units in LPAD, RPAD and OVERLAY, as in Flink.
A function that can give NULL for arguments that are not has a nullable result, also where Flink declares
it NOT NULL.
"""

from __future__ import annotations

from tidemill.functions.api import Resolver, ScalarFunction, SparkCall, Translation
from tidemill.functions.arrays import text
from tidemill.functions.arrays.api import Entry, by_value
from tidemill.functions.signatures import (
    CHARACTER,
    INTEGER,
    Rule,
    Types,
    fixed,
    nullable,
    same_as,
    signature,
    with_aliases,
)
from tidemill.functions.spark_text import (
    LONGEST_TEXT,
    bind,
    each,
    in_utf16,
    of_bounded_length,
    quoted,
    template,
)
from tidemill.types import logical as t

_TEXT = fixed(t.STRING)


def _f(
    name: str, resolve: Resolver, spark: Translation, *aliases: str, arrays: Entry | None = None
) -> tuple[ScalarFunction, ...]:
    return with_aliases(ScalarFunction(name=name, resolve=resolve, spark=spark, arrays=arrays), *aliases)


def _as_varchar(index: int) -> Rule:
    """VARCHAR of the argument's length."""

    def rule(types: Types) -> t.LogicalType:
        kind = types[index]
        assert isinstance(kind, t.LengthType)
        return t.VarCharType(length=kind.length, nullable=any(k.nullable for k in types))

    return rule


def _concatenated(types: Types) -> t.LogicalType:
    """CHAR(m) || CHAR(n) is CHAR(m + n); with a VARCHAR it is a VARCHAR; lengths saturate."""
    length = min(sum(k.length for k in types if isinstance(k, t.LengthType)), t.MAX_LENGTH)
    null = any(k.nullable for k in types)
    if all(isinstance(k, t.CharType) for k in types):
        return t.CharType(length=length, nullable=null)
    return t.VarCharType(length=length, nullable=null)


def _overlaid(types: Types) -> t.LogicalType:
    joined = _concatenated(types[:2])
    assert isinstance(joined, t.LengthType)
    return t.VarCharType(length=joined.length, nullable=any(k.nullable for k in types))


_CONCAT_FORMS = "<STRING> || <STRING>'\n'<EQUIVALENT_TYPE> || <EQUIVALENT_TYPE>"


def _concat_ws(call: SparkCall) -> str:
    separator, *parts = call.args
    if not parts:
        return f"CASE WHEN {separator} IS NOT NULL THEN '' END"
    return f"concat_ws({separator}, {', '.join(parts)})"


_WORDS = r"[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+"
_BLANK = "' '"


def _initcap(call: SparkCall) -> str:
    # A word is a run of letters, marks and digits; Spark's own INITCAP knows only blanks between words.
    words = f"regexp_extract_all({call.args[0]}, {quoted(_WORDS)}, 0)"
    return f"array_join({each(words, lambda w: f'initcap({w})')}, '')"


def _trim(call: SparkCall) -> str:
    """TRIM([mode] [characters] FROM text): option MODE, arguments (text[, characters])."""
    return _trim_side(call.options.get("MODE", "BOTH"))(call)


def _trim_side(mode: str) -> Translation:
    return lambda call: f"trim({mode} {(*call.args[1:], _BLANK)[0]} FROM {call.args[0]})"


def _pad(function: str) -> Translation:
    def translate(call: SparkCall) -> str:
        text, length, fill = call.args
        padded = in_utf16((text, fill), lambda s, f: f"{function}({s}, {length}, {f})")
        if not _is_short(call.literals[1]):
            padded = of_bounded_length(length, padded)
        if _not_negative(call.literals[1]) and call.literals[2]:
            return padded
        return f"CASE WHEN {length} >= 0 AND {fill} <> '' THEN {padded} END"

    return translate


def _substring(call: SparkCall) -> str:
    """A start before the text's begin gives '', a negative length NULL."""
    text, start, *length = call.args
    cut = f"substring({text}, {start}{', ' + length[0] if length else ''})"
    if not _not_negative(call.literals[1]):
        cut = f"CASE WHEN {start} < -length({text}) THEN substring({text}, 1, 0) ELSE {cut} END"
    if length and not _not_negative(call.literals[2]):
        return f"CASE WHEN {length[0]} >= 0 THEN {cut} END"
    return cut


def _not_negative(literal: object) -> bool:
    return isinstance(literal, int) and literal >= 0


def _is_short(literal: object) -> bool:
    return isinstance(literal, int) and literal <= LONGEST_TEXT


def _repeat(call: SparkCall) -> str:
    text, times = call.args
    factor = f"CAST({times} AS BIGINT)"
    return bind(text, lambda s: of_bounded_length(f"octet_length({s}) * {factor}", f"repeat({s}, {times})"))


def _replace(call: SparkCall) -> str:
    text, search, new = call.args
    if call.literals[1]:
        return template("replace({0}, {1}, {2})")(call)
    return bind(
        text,
        lambda s: (
            f"CASE WHEN {search} <> '' THEN replace({s}, {search}, {new}) "
            f"WHEN {search} = '' THEN CASE WHEN {s} = '' THEN {new} "
            f"ELSE concat({new}, array_join(split({s}, ''), {new}), {new}) END END"
        ),
    )


def _overlay(call: SparkCall) -> str:
    text, new, start, *length = call.args
    return in_utf16(
        (text, new), lambda s, n: _overlay_of(s, n, start, length[0] if length else f"length({n})")
    )


def _overlay_of(text: str, new: str, start: str, length: str) -> str:
    head = f"concat(left({text}, {start} - 1), {new}"
    return (
        f"CASE WHEN {start} < 1 OR {start} > length({text}) THEN CASE WHEN {new} IS NOT NULL "
        f"AND {length} IS NOT NULL THEN {text} END "
        f"WHEN {length} <= 0 OR {start} + {length} > length({text}) THEN {head}) "
        f"ELSE {head}, substring({text}, {start} + {length})) END"
    )


def _string(
    name: str, result: Rule, *aliases: str, arrays: Entry | None = None
) -> tuple[ScalarFunction, ...]:
    """One character argument."""
    spark = template(f"{name.lower()}({{0}})")
    return _f(name, signature(name, CHARACTER, result=result), spark, *aliases, arrays=arrays)


_INT = fixed(t.INT)

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *_f(
        "||",
        signature("||", CHARACTER, CHARACTER, result=_concatenated, forms=_CONCAT_FORMS),
        template("concat({all})"),
        arrays=by_value(text.concatenated),
    ),
    *_f(
        "CONCAT",
        signature("CONCAT", CHARACTER, result=_TEXT, variadic=True),
        template("concat({all})"),
        arrays=by_value(text.concatenated),
    ),
    *_f(
        "CONCAT_WS",
        signature(
            "CONCAT_WS", CHARACTER, result=lambda a: t.STRING.with_nullable(a[0].nullable), variadic=True
        ),
        _concat_ws,
        arrays=by_value(text.joined),
    ),
    *_string("CHAR_LENGTH", _INT, "CHARACTER_LENGTH", arrays=by_value(text.length)),
    *_string("UPPER", same_as(0), arrays=by_value(text.upper)),
    *_string("LOWER", same_as(0), arrays=by_value(text.lower)),
    *_f("INITCAP", signature("INITCAP", CHARACTER, result=same_as(0)), _initcap),
    *_f(
        "TRIM",
        signature("TRIM", CHARACTER, CHARACTER, result=_as_varchar(0), optional=1),
        _trim,
        arrays=text.trim(),
    ),
    *_f(
        "LTRIM",
        signature("LTRIM", CHARACTER, CHARACTER, result=_as_varchar(0), optional=1),
        _trim_side("LEADING"),
        arrays=text.trim("LEADING"),
    ),
    *_f(
        "RTRIM",
        signature("RTRIM", CHARACTER, CHARACTER, result=_as_varchar(0), optional=1),
        _trim_side("TRAILING"),
        arrays=text.trim("TRAILING"),
    ),
    *_f(
        "BTRIM",
        signature("BTRIM", CHARACTER, CHARACTER, result=_TEXT, optional=1),
        _trim_side("BOTH"),
        arrays=text.trim("BOTH"),
    ),
    *_f(
        "SUBSTRING",
        signature("SUBSTRING", CHARACTER, INTEGER, INTEGER, result=nullable(_as_varchar(0)), optional=1),
        _substring,
        "SUBSTR",
        arrays=text.substring,
    ),
    *_f(
        "LEFT",
        signature("LEFT", CHARACTER, INTEGER, result=nullable(_as_varchar(0))),
        template("left({0}, {1})"),
        arrays=text.left,
    ),
    *_f(
        "RIGHT",
        signature("RIGHT", CHARACTER, INTEGER, result=nullable(_as_varchar(0))),
        template("right({0}, {1})"),
        arrays=text.right,
    ),
    *_f(
        "LPAD",
        signature("LPAD", CHARACTER, INTEGER, CHARACTER, result=nullable(_TEXT)),
        _pad("lpad"),
        arrays=text.pad("left"),
    ),
    *_f(
        "RPAD",
        signature("RPAD", CHARACTER, INTEGER, CHARACTER, result=nullable(_TEXT)),
        _pad("rpad"),
        arrays=text.pad("right"),
    ),
    *_f("REPEAT", signature("REPEAT", CHARACTER, INTEGER, result=_TEXT), _repeat, arrays=text.repeat),
    *_string("REVERSE", nullable(_TEXT), arrays=by_value(text.reversed_text)),
    *_f(
        "REPLACE",
        signature("REPLACE", CHARACTER, CHARACTER, CHARACTER, result=_TEXT),
        _replace,
        arrays=text.replace,
    ),
    *_f(
        "TRANSLATE",
        signature(
            "TRANSLATE",
            CHARACTER,
            CHARACTER,
            CHARACTER,
            result=lambda a: t.STRING.with_nullable(a[0].nullable),
        ),
        template("translate({0}, coalesce({1}, ''), coalesce({2}, ''))"),
        "TRANSLATE3",
    ),
    *_f(
        "OVERLAY",
        signature("OVERLAY", CHARACTER, CHARACTER, INTEGER, INTEGER, result=_overlaid, optional=1),
        _overlay,
    ),
    *_string("ASCII", _INT),
    *_f("CHR", signature("CHR", INTEGER, result=nullable(_TEXT)), template("chr({0})")),
)
