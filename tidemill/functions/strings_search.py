"""String functions that look for something: positions, splitting, prefixes, character classes."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import patterns, text
from tidemill.functions.arrays.api import Entry
from tidemill.functions.sharing import share
from tidemill.functions.signatures import (
    AS_INT,
    BINARY,
    CHARACTER,
    NUMERIC,
    fixed,
    kind_of,
    nullable,
    overloaded,
    signature,
)
from tidemill.functions.spark_text import each, fold, quoted, template
from tidemill.functions.values import by_key, last_of_each_key
from tidemill.types import logical as t

_INT = fixed(t.INT)
_BOOLEAN = fixed(t.BOOLEAN)
_TEXTS = t.ArrayType(element=t.STRING)
_TEXT_MAP = t.MapType(key=t.STRING, value=t.STRING)


def _locate(call: SparkCall) -> str:
    """LOCATE(needle, text[, from]); an empty needle is at 1, a start below 1 is 1."""
    needle, text, *start = call.args
    if not start:
        return f"locate({needle}, {text})"
    if isinstance(call.literals[2], int):
        return f"locate({needle}, {text}, {max(call.literals[2], 1)})"
    return f"CASE WHEN {start[0]} IS NOT NULL THEN locate({needle}, {text}, greatest({start[0]}, 1)) END"


def _instr(call: SparkCall) -> str:
    """INSTR(text, needle[, start[, nth]]); a negative start searches the reversed text, 0 finds nothing."""
    text, needle, *arguments = call.args
    if not arguments:
        return f"locate({needle}, {text})"
    nth = arguments[1] if len(arguments) > 1 else "1"
    return share(text, lambda s: share(needle, lambda n: _instr_from(s, n, arguments[0], nth)))


def _instr_from(text: str, needle: str, start: str, nth: str) -> str:
    forward = _nth_position(text, needle, start, nth)
    backward = _nth_position(f"reverse({text})", f"reverse({needle})", f"-{_wide(start)}", nth)
    mirrored = f"CASE WHEN {backward} = 0 THEN 0 ELSE length({text}) - {backward} - length({needle}) + 2 END"
    error = "CAST(raise_error('nthAppearance must be positive!') AS INT)"
    is_supported = f"{text} IS NOT NULL AND {needle} IS NOT NULL"
    return (
        f"CASE WHEN {is_supported} AND {nth} < 1 THEN {error} "
        f"WHEN {is_supported} AND {nth} >= 1 THEN CASE WHEN {start} = 0 THEN 0 "
        f"WHEN {start} > 0 THEN {forward} WHEN {start} < 0 THEN {mirrored} END END"
    )


def _wide(number: str) -> str:
    return f"CAST({number} AS BIGINT)"


def _nth_position(text: str, needle: str, start: str, nth: str) -> str:
    """Matches may overlap; an empty needle is found at 1 however often it is asked for."""
    first = f"locate({needle}, {text}, CAST({start} AS INT))"
    if nth == "1":
        return first
    return fold(
        f"sequence(1, greatest({nth} - 1, 0) + 1)",
        "-1",
        lambda position, turn: (
            f"CASE WHEN {turn} = 1 THEN {first} WHEN {position} = 0 OR {needle} = '' THEN {position} "
            f"ELSE locate({needle}, {text}, {position} + 1) END"
        ),
    )


def literal_pattern(separator: str, literal: object) -> str:
    """The regular expression that matches the text ``separator`` itself, as Spark SQL text."""
    if isinstance(literal, str):
        return quoted("".join(f"\\{c}" if c in r"\.[]{}()*+-?^$|&~#" else c for c in literal))
    return f"concat('\\\\Q', replace({separator}, '\\\\E', '\\\\E\\\\\\\\E\\\\Q'), '\\\\E')"


def _split(call: SparkCall) -> str:
    """An empty text has no parts; an empty separator splits into code points."""
    text, separator = call.args
    if call.literals[1]:
        parts = f"split({text}, {literal_pattern(separator, call.literals[1])})"
    else:
        pattern = f"CASE WHEN {separator} = '' THEN '' ELSE {literal_pattern(separator, None)} END"
        parts = f"split({text}, {pattern})"
    empty = "CAST(array() AS ARRAY<STRING>)"
    return share(
        text, lambda s: f"CASE WHEN {s} = '' AND {separator} IS NOT NULL THEN {empty} ELSE {parts} END"
    )


def _split_index(call: SparkCall) -> str:
    """SPLIT_INDEX(text, separator or character code, index from 0); NULL beyond; '' splits at blanks."""
    text, separator, index = call.args
    if isinstance(call.arg_types[1], t.INTEGER_TYPES):
        pattern = (
            f"CASE WHEN {separator} BETWEEN 1 AND 255 THEN {literal_pattern(f'chr({separator})', None)} END"
        )
    elif call.literals[1]:
        pattern = literal_pattern(separator, call.literals[1])
    else:
        pattern = f"CASE WHEN {separator} = '' THEN '\\\\s' ELSE {literal_pattern(separator, None)} END"
    return f"get(split(nullif({text}, ''), {pattern}), {index})"


def _str_to_map(call: SparkCall) -> str:
    """Delimiters are regular expressions; trailing empty entries vanish; of equal keys the last stays."""
    text, *delimiters = call.args
    entry, pair = delimiters or ("','", "'='")
    # A delimiter's matches at the end of the text make no entries.
    parts = f"split({text}, {entry})"
    keeps = fold(
        parts,
        "CAST(named_struct('n', 0, 'last', 0) AS STRUCT<n: INT, last: INT>)",
        lambda a, x: (
            f"named_struct('n', {a}.n + 1, 'last', CASE WHEN {x} <> '' THEN {a}.n + 1 ELSE {a}.last END)"
        ),
        lambda a: f"{a}.last",
    )
    pairs = each(f"slice({parts}, 1, {keeps})", lambda e: f"split({e}, {pair}, 2)", role="p")
    entries = each(pairs, lambda p: f"named_struct('key', {p}[0], 'value', get({p}, 1))", role="k")
    return by_key(last_of_each_key(entries, _TEXT_MAP.key), call.result)


def _class_of(name: str, pattern: str, numbers: str) -> ScalarFunction:
    """IS_ALPHA and its kin: FALSE for NULL; of a number only whether it is an integer matters."""

    def translate(call: SparkCall) -> str:
        if isinstance(call.arg_types[0], t.CHARACTER_TYPES):
            return f"coalesce({call.args[0]} RLIKE {quoted(pattern)}, FALSE)"
        return numbers if isinstance(call.arg_types[0], t.INTEGER_TYPES) else "FALSE"

    kind = kind_of("<CHARACTER>", CHARACTER, NUMERIC)
    resolve = signature(
        name,
        kind,
        result=lambda _: t.BooleanType(nullable=False),
        forms=f"{name}(<CHARACTER>)'\n'{name}(<NUMERIC>)",
    )
    return ScalarFunction(name=name, resolve=resolve, spark=translate)


_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_HEX_FLOAT = r"0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
# What Java's Double.valueOf takes.
_JAVA_DOUBLE = rf"\A[\x00-\x20]*[+-]?(NaN|Infinity|({_DIGITS}|{_HEX_FLOAT})[fFdD]?)[\x00-\x20]*\z"


def _affix(name: str, arrays: Entry) -> ScalarFunction:
    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        texts = signature(name, CHARACTER, CHARACTER, result=_BOOLEAN)
        return overloaded(signature(name, BINARY, BINARY, result=_BOOLEAN), texts)(arguments, options)

    spark = template(f"{name.lower()}({{0}}, {{1}})")
    return ScalarFunction(name=name, resolve=resolve, spark=spark, arrays=arrays)


def _resolve_elt(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """ELT(index, text, ...): NULL beyond the texts; all texts or all binaries."""
    kinds = tuple(a.type for a in arguments[1:])
    families = (t.CHARACTER_TYPES, t.BINARY_TYPES)
    same = any(all(isinstance(k, family) for k in kinds) for family in families)
    if not kinds or not same or not isinstance(arguments[0].type, t.INTEGER_TYPES):
        raise SignatureError("Invalid input arguments. Expected ELT(index <INTEGER>, <STRING>, <STRING>...)")
    length = max(k.length for k in kinds if isinstance(k, t.LengthType))
    result: t.LogicalType = t.VarBinaryType(length=length)
    if isinstance(kinds[0], t.CHARACTER_TYPES):
        fixed_length = all(isinstance(k, t.CharType) and k.length == length for k in kinds)
        result = t.CharType(length=length) if fixed_length else t.VarCharType(length=length)
    return Resolved(arg_types=(arguments[0].type, *kinds), result=result)


def _split_resolver() -> Resolver:
    texts = signature("SPLIT_INDEX", CHARACTER, CHARACTER, AS_INT, result=nullable(fixed(t.STRING)))
    codes = signature("SPLIT_INDEX", CHARACTER, AS_INT, AS_INT, result=nullable(fixed(t.STRING)))
    return overloaded(codes, texts)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    # POSITION(needle IN text [FROM start]) has LOCATE's arguments.
    *(
        ScalarFunction(
            name=name,
            resolve=signature(name, CHARACTER, CHARACTER, AS_INT, result=_INT, optional=1),
            spark=_locate,
            arrays=text.position(0),
        )
        for name in ("POSITION", "LOCATE")
    ),
    ScalarFunction(
        name="INSTR",
        resolve=signature("INSTR", CHARACTER, CHARACTER, AS_INT, AS_INT, result=_INT, optional=2),
        spark=_instr,
        arrays=text.position(1),
    ),
    ScalarFunction(
        name="SPLIT", resolve=signature("SPLIT", CHARACTER, CHARACTER, result=fixed(_TEXTS)), spark=_split
    ),
    ScalarFunction(
        name="SPLIT_INDEX", resolve=_split_resolver(), spark=_split_index, arrays=text.split_index
    ),
    ScalarFunction(
        name="STR_TO_MAP",
        resolve=overloaded(
            signature("STR_TO_MAP", CHARACTER, CHARACTER, CHARACTER, result=nullable(fixed(_TEXT_MAP))),
            signature("STR_TO_MAP", CHARACTER, result=nullable(fixed(_TEXT_MAP))),
        ),
        spark=_str_to_map,
    ),
    ScalarFunction(name="ELT", resolve=_resolve_elt, spark=template("elt({all})")),
    _affix("STARTSWITH", patterns.starts_with),
    _affix("ENDSWITH", patterns.ends_with),
    _class_of("IS_ALPHA", r"\A\p{L}+\z", "FALSE"),
    _class_of("IS_DIGIT", r"\A\p{Nd}+\z", "TRUE"),
    _class_of("IS_DECIMAL", _JAVA_DOUBLE, "TRUE"),
)
