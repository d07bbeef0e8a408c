"""From ``fields.<name>.*`` options to value generators, type by type, with Flink's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.datagen import values as v
from tidemill.connectors.option_values import parse_option
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_BITS: dict[type[t.LogicalType], int] = {
    t.TinyIntType: 7,
    t.SmallIntType: 15,
    t.IntType: 31,
    t.BigIntType: 63,
}
_LARGEST: dict[type[t.LogicalType], float] = {
    t.FloatType: float(np.finfo(np.float32).max),
    t.DoubleType: float(np.finfo(np.float64).max),
}
_SEQUENCES = (*t.INTEGER_TYPES, *t.APPROXIMATE_TYPES, t.DecimalType, *t.CHARACTER_TYPES)
_LENGTH = 100
_ELEMENTS = 3
_MOST_DIGITS = 18


@dataclass(slots=True)
class FieldOptions:
    """Reads options and remembers which keys exist; ``rows`` collects the lengths of sequences."""

    given: Mapping[str, str]
    known: set[str] = field(default_factory=set)
    rows: list[int] = field(default_factory=list)

    def read(self, key: str, kind: str, default: Any) -> Any:
        self.known.add(key)
        text = self.given.get(key)
        return default if text is None else parse_option(ConnectorOption(key=key, kind=kind), text)

    def required(self, key: str) -> int:
        value = self.read(key, "int", None)
        if value is None:
            raise ValidationError(f"Could not find required property '{key}' for sequence generator.")
        return int(value)


def field_values(name: str, kind: t.LogicalType, options: FieldOptions) -> v.Values:
    """The generator of one column; ValidationError for options that do not fit."""
    prefix = f"fields.{name}"
    way = options.read(f"{prefix}.kind", "string", "random")
    if way == "sequence":
        return _sequence(prefix, kind, options)
    if way != "random":
        raise ValidationError(f"Unsupported generator kind: {way}", expected=("random", "sequence"))
    made = _random(kind, prefix, options)
    rate = options.read(f"{prefix}.null-rate", "float", 0.0)
    if not 0 <= rate <= 1:
        raise ValidationError(f"Could not parse value '{rate}' for key '{prefix}.null-rate': from 0 to 1.")
    return v.WithNulls(values=made, rate=rate) if rate else made


def _sequence(prefix: str, kind: t.LogicalType, options: FieldOptions) -> v.Values:
    if not isinstance(kind, _SEQUENCES):
        raise ValidationError(f"Unsupported type: {kind} for a sequence generator ({prefix}).")
    start, end = options.required(f"{prefix}.start"), options.required(f"{prefix}.end")
    if end < start:
        raise ValidationError(f"The end of a sequence must not be before its start: {prefix}.")
    options.rows.append(end - start + 1)
    return v.Sequence(kind=arrow_type(kind), start=start, end=end)


@singledispatch
def _random(kind: t.LogicalType, prefix: str, options: FieldOptions) -> v.Values:
    raise NotSupportedError(f"datagen cannot make values of type {kind} ({prefix}).")


@_random.register
def _(kind: t.BooleanType, prefix: str, options: FieldOptions) -> v.Values:
    return v.Booleans()


@_random.register(t.TinyIntType)
@_random.register(t.SmallIntType)
@_random.register(t.IntType)
@_random.register(t.BigIntType)
def _(kind: t.LogicalType, prefix: str, options: FieldOptions) -> v.Values:
    bound = 1 << _BITS[type(kind)]
    low, high = _bounds(prefix, "int", -bound, bound - 1, options)
    if low < -bound or high >= bound:
        raise ValidationError(f"{prefix}: the bounds {low} and {high} do not fit {kind}.")
    return v.Integers(kind=arrow_type(kind), low=low, high=high)


@_random.register(t.FloatType)
@_random.register(t.DoubleType)
def _(kind: t.LogicalType, prefix: str, options: FieldOptions) -> v.Values:
    largest = _LARGEST[type(kind)]
    low, high = _bounds(prefix, "float", -largest, largest, options)
    return v.Floats(kind=arrow_type(kind), low=low, high=high)


@_random.register
def _(kind: t.DecimalType, prefix: str, options: FieldOptions) -> v.Values:
    """Values of more than 18 digits are not drawn; the bounds stop there."""
    most = 10 ** min(kind.precision, _MOST_DIGITS) - 1
    low, high = (options.read(f"{prefix}.{end}", "string", None) for end in ("min", "max"))
    unit = Decimal(10) ** kind.scale
    return v.Decimals(
        kind=arrow_type(kind),
        low=-most if low is None else max(-most, int(Decimal(low) * unit)),
        high=most if high is None else min(most, int(Decimal(high) * unit)),
    )


def _bounds(prefix: str, kind: str, low: Any, high: Any, options: FieldOptions) -> tuple[Any, Any]:
    least = options.read(f"{prefix}.min", kind, low)
    most = options.read(f"{prefix}.max", kind, high)
    if least > most:
        raise ValidationError(f"{prefix}.min ({least}) must not be larger than {prefix}.max ({most}).")
    return least, most


@_random.register(t.VarCharType)
@_random.register(t.VarBinaryType)
def _(kind: t.LengthType, prefix: str, options: FieldOptions) -> v.Values:
    length = options.read(f"{prefix}.length", "int", min(_LENGTH, kind.length))
    if length > kind.length or length < 0:
        raise ValidationError(
            f"Custom length '{length}' for variable-length type field '{prefix}' must not exceed {kind}."
        )
    varied = options.read(f"{prefix}.var-len", "bool", False)
    maker = v.Texts if isinstance(kind, t.VarCharType) else v.Bytes
    return maker(length=length, varied=varied)


@_random.register(t.CharType)
@_random.register(t.BinaryType)
def _(kind: t.LengthType, prefix: str, options: FieldOptions) -> v.Values:
    if f"{prefix}.length" in options.given:
        name = prefix.removeprefix("fields.")
        raise ValidationError(
            f"Custom length for fixed-length type (CHAR/BINARY) field '{name}' is not supported."
        )
    maker = v.Texts if isinstance(kind, t.CharType) else v.Bytes
    return maker(length=kind.length, varied=False)


@_random.register(t.TimestampType)
@_random.register(t.LocalZonedTimestampType)
def _(kind: t.LogicalType, prefix: str, options: FieldOptions) -> v.Values:
    past = options.read(f"{prefix}.max-past", "duration", None)
    return v.Moments(kind=arrow_type(kind), past=past.milliseconds if past else 0, shape=v.as_timestamp)


@_random.register
def _(kind: t.DateType, prefix: str, options: FieldOptions) -> v.Values:
    return v.Moments(kind=arrow_type(kind), past=0, shape=v.as_date)


@_random.register
def _(kind: t.TimeType, prefix: str, options: FieldOptions) -> v.Values:
    return v.Moments(kind=arrow_type(kind), past=0, shape=v.as_time)


def _elements(prefix: str, options: FieldOptions) -> int:
    return int(options.read(f"{prefix}.length", "int", _ELEMENTS))


@_random.register
def _(kind: t.ArrayType, prefix: str, options: FieldOptions) -> v.Values:
    elements = _random(kind.element, f"{prefix}.element", options)
    return v.Lists(elements=elements, length=_elements(prefix, options))


@_random.register
def _(kind: t.MapType, prefix: str, options: FieldOptions) -> v.Values:
    key = _random(kind.key, f"{prefix}.key", options)
    value = _random(kind.value, f"{prefix}.value", options)
    pairs = v.Rows(names=("key", "value"), children=(key, value))
    return v.Lists(elements=pairs, length=_elements(prefix, options))


@_random.register
def _(kind: t.MultisetType, prefix: str, options: FieldOptions) -> v.Values:
    element = _random(kind.element, f"{prefix}.element", options)
    count = v.Integers(kind=arrow_type(t.INT), low=0, high=10)
    pairs = v.Rows(names=("key", "value"), children=(element, count))
    return v.Lists(elements=pairs, length=_elements(prefix, options))


@_random.register
def _(kind: t.RowType, prefix: str, options: FieldOptions) -> v.Values:
    return v.Rows(
        names=tuple(f.name for f in kind.fields),
        children=tuple(_random(f.type, f"{prefix}.{f.name}", options) for f in kind.fields),
    )
