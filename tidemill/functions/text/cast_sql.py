"""CAST to and from character and binary strings.

The text of a value is Flink's: TRUE/FALSE, Java's text of floating numbers, decimals with their whole
scale, timestamps with exactly p fractional digits, intervals as ``+1-02`` and ``+0 00:00:01.000``,
collections as ``[1, 2]``, ``{k=1}`` and ``(1, NULL)``.
CHAR(n) and BINARY(n) pad and cut, VARCHAR(n) and VARBINARY(n) only cut; lengths are code points.
"""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.functions.cast_step import CastStep
from tidemill.functions.casts_nested import Caster, entry_types
from tidemill.functions.sharing import share
from tidemill.functions.spark_text import LONGEST_TEXT, each
from tidemill.functions.text.numbers import NO_EXPONENT
from tidemill.types import logical as t
from tidemill.types.physical import quote


def fit(sql: str, source: t.LogicalType | None, target: t.LogicalType) -> str:
    """Character or binary text ``sql`` of type ``source`` (None: unknown length) cut and padded."""
    assert isinstance(target, t.LengthType)
    if isinstance(target, t.CharType | t.BinaryType) and target.length > LONGEST_TEXT:
        raise NotSupportedError(f"CAST to {target}, which pads to more than {LONGEST_TEXT}, is not supported")
    source_length = source.length if isinstance(source, t.LengthType) else t.MAX_LENGTH
    fixed = isinstance(source, t.CharType | t.BinaryType)
    if isinstance(target, t.CharType):
        return sql if fixed and source_length == target.length else f"rpad({sql}, {target.length}, ' ')"
    if isinstance(target, t.BinaryType):
        return sql if fixed and source_length == target.length else f"rpad({sql}, {target.length}, X'00')"
    return sql if source_length <= target.length else f"substring({sql}, 1, {target.length})"


def text_to_text(step: CastStep) -> str:
    return fit(step.sql, step.source, step.target)


def text_to_binary(step: CastStep) -> str:
    return fit(f"CAST({step.sql} AS BINARY)", None, step.target)


def binary_to_text(step: CastStep) -> str:
    return fit(f"make_valid_utf8(CAST({step.sql} AS STRING))", None, step.target)


def simple_to_text(step: CastStep) -> str:
    """Integers, floating numbers, dates: Spark's text is Java's."""
    return fit(f"CAST({step.sql} AS STRING)", None, step.target)


def boolean_to_text(step: CastStep) -> str:
    return fit(f"upper(CAST({step.sql} AS STRING))", None, step.target)


def decimal_to_text(step: CastStep) -> str:
    """Plain digits: Spark writes values below 1e-6 with an exponent."""
    assert isinstance(step.source, t.DecimalType)
    if step.source.scale <= NO_EXPONENT:
        return simple_to_text(step)
    return fit(share(step.sql, _plain_decimal), None, step.target)


def _plain_decimal(sql: str) -> str:
    text = f"CAST({sql} AS STRING)"
    zeros = f"repeat('0', CAST(substring_index({text}, 'E-', -1) AS INT) - 1)"
    digits = f"replace(trim(LEADING '-' FROM substring_index({text}, 'E', 1)), '.', '')"
    small = f"concat(IF({sql} < 0, '-0.', '0.'), {zeros}, {digits})"
    return f"IF(instr({text}, 'E-') > 0, {small}, CAST({sql} AS STRING))"


def time_to_text(step: CastStep) -> str:
    """TIME(p) has at least one fractional digit where p > 0, and no zeros after it."""
    assert isinstance(step.source, t.TimeType)
    full = f"CAST(timestampadd(MILLISECOND, {step.sql}, TIMESTAMP_NTZ'1970-01-01 00:00:00') AS STRING)"
    if step.source.precision == 0:
        return fit(f"substring({full}, 12, 8)", None, step.target)
    whole = share(step.sql, lambda s: f"concat(substring({full}, 12), IF({s} % 1000 = 0, '.0', ''))")
    return fit(whole, None, step.target)


def timestamp_to_text(step: CastStep) -> str:
    return fit(timestamp_text(step.sql, step.source), None, step.target)


def timestamp_text(sql: str, kind: t.LogicalType) -> str:
    """``yyyy-MM-dd HH:mm:ss.fff`` with exactly the type's fractional digits."""
    assert isinstance(kind, t.TimestampType | t.LocalZonedTimestampType)
    if kind.precision == 0:
        return f"CAST({sql} AS STRING)"

    def body(s: str) -> str:
        dot = f"IF(extract(SECOND FROM {s}) % 1 = 0, '.', '')"
        return f"rpad(concat(CAST({s} AS STRING), {dot}), {20 + kind.precision}, '0')"

    return share(sql, body)


def months_to_text(step: CastStep) -> str:
    def body(s: str) -> str:
        sign = f"IF({s} < 0, '-', '+')"
        return f"concat({sign}, abs({s}) div 12, '-', lpad(CAST(abs({s}) % 12 AS STRING), 2, '0'))"

    return fit(share(step.sql, body), None, step.target)


def millis_to_text(step: CastStep) -> str:
    def body(s: str) -> str:
        clock = (("3600000", "24"), ("60000", "60"), ("1000", "60"))
        parts = ", ':', ".join(f"lpad(CAST(abs({s}) div {n} % {m} AS STRING), 2, '0')" for n, m in clock)
        fraction = f"lpad(CAST(abs({s}) % 1000 AS STRING), 3, '0')"
        return f"concat(IF({s} < 0, '-', '+'), abs({s}) div 86400000, ' ', {parts}, '.', {fraction})"

    return fit(share(step.sql, body), None, step.target)


def array_to_text(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.ArrayType)
    element = step.source.element
    items = each(step.sql, lambda e: _or_null(cast, e, element))
    return fit(f"concat('[', array_join({items}, ', '), ']')", None, step.target)


def entries_to_text(step: CastStep, cast: Caster) -> str:
    key, value = entry_types(step.source)
    entries = each(
        step.sql,
        lambda e: f"concat({_or_null(cast, f'{e}.key', key)}, '=', {_or_null(cast, f'{e}.value', value)})",
    )
    return fit(f"concat('{{', array_join({entries}, ', '), '}}')", None, step.target)


def row_to_text(step: CastStep, cast: Caster) -> str:
    assert isinstance(step.source, t.RowType)
    fields = step.source.fields

    def body(s: str) -> str:
        field_texts = ", ', ', ".join(_or_null(cast, f"{s}.{quote(f.name)}", f.type) for f in fields)
        text = f"concat('(', {field_texts}, ')')"
        return f"IF({s} IS NULL, NULL, {text})" if step.source.nullable else text

    return fit(share(step.sql, body), None, step.target)


def _or_null(cast: Caster, sql: str, kind: t.LogicalType) -> str:
    return f"coalesce({cast(sql, kind, t.STRING)}, 'NULL')"
