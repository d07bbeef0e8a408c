"""JSON text as a Spark VARIANT that keeps numbers exactly as written.

A VARIANT would turn 1.50 into 1.5 and 1e3 into 1000.0. So, before parsing, each number of a document
that has fractions, exponents or long integers is turned into a string that starts with a mark, and
after selection the mark and the quotes go. Objects come out with sorted keys and the last of equal keys,
as Flink's mapper gives them (``spark.sql.variant.allowDuplicateKeys`` must be true); text after the
first value is ignored.

Cost: one parse per call and row, one more scan for documents with such numbers.
"""

from __future__ import annotations

from functools import reduce

from tidemill.functions.json_paths import JsonPath, Step
from tidemill.functions.sharing import share
from tidemill.functions.spark_text import bind, each, keep, quoted

# A noncharacter, which no text interchange may contain.
_MARK = "\ufdd0"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BEFORE = r'\G((?:"(?:[^"\\]|\\.)*+"|[^"0-9-])*+)'
_UNMARKED_NUMBER = f"(?s){_BEFORE}({_NUMBER})"
_MARKED_NUMBER = f'$1"{_MARK}$2"'
_INEXACT = r"[0-9][.eE]|[0-9]{19}"
_NUMBER_PARTS = r"\A(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?\z"
_OPENING = f'"{_MARK}'
_MARKED = f'"{_MARK}([^"]*)"'
_PIECES = f'"{_MARK}[^"]*"|(?:(?!"{_MARK})[\\s\\S])+'
_SPECIAL = f'{_MARK}[^"]*[eE]|{_MARK}-?0\\.000000|{_MARK}-0(?:\\.0*)?"'


def parsed(text: str) -> str:
    """The VARIANT of JSON text; NULL where it is none."""
    marked = f"regexp_replace({text}, {quoted(_UNMARKED_NUMBER)}, {quoted(_MARKED_NUMBER)})"
    return share(
        text,
        lambda s: f"try_parse_json(CASE WHEN {s} RLIKE {quoted(_INEXACT)} THEN {marked} ELSE {s} END)",
    )


def selected(document: str, path: JsonPath) -> str:
    """What ``path`` selects of a VARIANT, as a VARIANT; NULL where it leads nowhere.

    A path with a wildcard selects a list (an array of VARIANTs), empty if nothing fits.
    """
    first = next((i for i, s in enumerate(path.steps) if s.is_wildcard), None)
    if first is None:
        return _definite(document, path.steps)
    children = bind(_definite(document, path.steps[:first]), _children)
    return reduce(_below, path.steps[first + 1 :], children)


def _below(values: str, step: Step) -> str:
    """What ``step`` selects of each of an array of VARIANTs."""
    if step.is_wildcard:
        return f"flatten({each(values, _children, role='w')})"
    selected_values = each(values, lambda v: _definite(v, (step,)), role="d")
    return keep(selected_values, lambda v: f"{v} IS NOT NULL", role="n")


def is_list(path: JsonPath) -> bool:
    """Whether ``selected`` gives an array of VARIANTs."""
    return any(step.is_wildcard for step in path.steps)


def _definite(value: str, steps: tuple[Step, ...]) -> str:
    forward = "".join(_forward(step) for step in steps)
    if "-" not in {str(s.index)[:1] for s in steps}:
        return f"try_variant_get({value}, {quoted('$' + forward)}, 'variant')"
    last = max(i for i, s in enumerate(steps) if s.index is not None and s.index < 0)
    array = f"try_variant_get({_definite(value, steps[:last])}, '$', 'array<variant>')"
    element = f"try_element_at({array}, {steps[last].index})"
    return _definite(element, steps[last + 1 :]) if steps[last + 1 :] else element


def _forward(step: Step) -> str:
    if step.index is not None:
        return f"[{step.index}]"
    quote = "'" if '"' in str(step.name) else '"'
    return f"[{quote}{step.name}{quote}]"


def _children(value: str) -> str:
    """An array's elements; the member of an object with one; none of a scalar; NULL of nothing."""
    members = f"map_values(try_variant_get({value}, '$', 'map<string,variant>'))"
    error = "raise_error('A JSON path wildcard met an object of several members')"
    return (
        f"CASE WHEN {value} IS NULL THEN NULL "
        f"ELSE coalesce(try_variant_get({value}, '$', 'array<variant>'), "
        f"CASE WHEN array_size({members}) > 1 THEN {error} ELSE {members} END, array()) END"
    )


def json_of(value: str) -> str:
    """The JSON text of a VARIANT, numbers as written."""
    return share(f"to_json({value})", unmarked)


def json_of_list(values: str) -> str:
    """The JSON array of an array of VARIANTs."""
    return f"concat('[', array_join({each(values, lambda v: f'to_json({v})', role='j')}, ','), ']')"


def unmarked(text: str) -> str:
    """JSON text with its marked strings as numbers again."""
    number = exact_number(f"regexp_extract(piece, {quoted(_MARKED)}, 1)")
    pieces = (
        f"transform(regexp_extract_all({text}, {quoted(_PIECES)}, 0), piece -> "
        f"CASE WHEN startswith(piece, {quoted(_OPENING)}) THEN {number} ELSE piece END)"
    )
    return (
        f"CASE WHEN NOT contains({text}, {quoted(_MARK)}) THEN {text} "
        f"WHEN {text} RLIKE {quoted(_SPECIAL)} THEN array_join({pieces}, '') "
        f"ELSE regexp_replace({text}, {quoted(_MARKED)}, '$1') END"
    )


def scalar_text(value: str) -> str:
    """The text of a VARIANT scalar: a string unquoted, a number as written."""
    string = f"try_variant_get({value}, '$', 'string')"
    return bind(string, _unmarked_string)


def _unmarked_string(text: str) -> str:
    number = exact_number(f"substring({text}, 2)")
    return f"CASE WHEN startswith({text}, {quoted(_MARK)}) THEN {number} ELSE {text} END"


def exact_number(text: str) -> str:
    """A number's text as Java's BigDecimal prints it: 1e3 is 1E+3, 0.0000001 is 1E-7, -0.0 is 0.0."""
    simple = r"\A-?[0-9]+(\.[0-9]+)?\z"
    tiny = r"\A-?0\.000000|\A-0(\.0*)?\z"
    return bind(
        text,
        lambda s: (
            f"CASE WHEN {s} RLIKE {quoted(simple)} AND NOT {s} RLIKE {quoted(tiny)} THEN {s} "
            f"ELSE {_from_parts(s)} END"
        ),
    )


def _from_parts(text: str) -> str:
    def part(group: int) -> str:
        return f"regexp_extract({text}, {quoted(_NUMBER_PARTS)}, {group})"

    digits = f"coalesce(nullif(ltrim('0', concat({part(2)}, {part(3)})), ''), '0')"
    scale = f"length({part(3)}) - coalesce(CAST({part(4)} AS INT), 0)"
    return bind(
        f"named_struct('m', {part(1)}, 'd', {digits}, 's', {scale})",
        lambda n: (
            f"concat(CASE WHEN {n}.d = '0' THEN '' ELSE {n}.m END, "
            f"{_decimal_text(f'{n}.d', f'{n}.s', f'(length({n}.d) - 1 - {n}.s)')})"
        ),
    )


def _decimal_text(digits: str, scale: str, exponent: str) -> str:
    """Unscaled ``digits`` at ``scale``; ``exponent`` is that of scientific notation."""
    plain = (
        f"CASE WHEN {scale} = 0 THEN {digits} WHEN length({digits}) > {scale} "
        f"THEN concat(left({digits}, length({digits}) - {scale}), '.', right({digits}, {scale})) "
        f"ELSE concat('0.', lpad({digits}, {scale}, '0')) END"
    )
    point = f"CASE WHEN length({digits}) > 1 THEN '.' ELSE '' END"
    mantissa = f"concat(left({digits}, 1), {point}, substring({digits}, 2))"
    power = f"concat('E', CASE WHEN {exponent} > 0 THEN '+' ELSE '' END, {exponent})"
    scientific = f"concat({mantissa}, CASE WHEN {exponent} = 0 THEN '' ELSE {power} END)"
    return f"CASE WHEN {scale} >= 0 AND {exponent} >= -6 THEN {plain} ELSE {scientific} END"
