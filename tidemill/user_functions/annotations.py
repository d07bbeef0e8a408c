"""Flink's type texts from the types of a Python module: type texts, ``pyarrow`` types, annotations."""

from __future__ import annotations

import datetime
import inspect
import types
import typing
from decimal import Decimal
from typing import Any

import pyarrow as pa

_PYTHON: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BYTES",
    Decimal: "DECIMAL(38, 18)",
    datetime.date: "DATE",
    datetime.time: "TIME(3)",
    datetime.datetime: "TIMESTAMP(6)",
    datetime.timedelta: "INTERVAL DAY TO SECOND(3)",
}
_ARROW: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.date32(): "DATE",
    pa.time32("s"): "TIME(0)",
    pa.time32("ms"): "TIME(3)",
    pa.duration("ms"): "INTERVAL DAY TO SECOND(3)",
}
_DIGITS = {"s": 0, "ms": 3, "us": 6}


def type_text(spec: Any) -> str:
    """Flink's text of a declared type; TypeError for an Arrow type without a counterpart in Flink."""
    if isinstance(spec, str):
        return spec
    if not isinstance(spec, pa.DataType):
        raise TypeError(f"A type is a text such as 'BIGINT' or a pyarrow type, not {spec!r}")
    text = _ARROW.get(spec)
    return text if text is not None else _arrow_text(spec)


def _arrow_text(arrow_type: pa.DataType) -> str:
    if pa.types.is_decimal(arrow_type):
        return f"DECIMAL({arrow_type.precision}, {arrow_type.scale})"
    if pa.types.is_timestamp(arrow_type) and arrow_type.unit in _DIGITS:
        return f"TIMESTAMP{'' if arrow_type.tz is None else '_LTZ'}({_DIGITS[arrow_type.unit]})"
    if pa.types.is_map(arrow_type):
        return f"MAP<{type_text(arrow_type.key_type)}, {type_text(arrow_type.item_type)}>"
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return f"ARRAY<{type_text(arrow_type.value_type)}>"
    if pa.types.is_struct(arrow_type):
        return "ROW<" + ", ".join(f"`{f.name}` {type_text(f.type)}" for f in arrow_type) + ">"
    raise TypeError(f"The Arrow type {arrow_type} has no counterpart in Flink SQL")


def result_text(function: Any) -> str | None:
    """The type of a function's annotated result; None if there is none or it has no counterpart."""
    return annotation_text(_hints(function).get("return"))


def parameter_texts(function: Any) -> tuple[str, ...] | None:
    """The types of a function's parameters; None unless all are annotated, plain and without default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    hints = _hints(function)
    texts = []
    for parameter in parameters:
        text = annotation_text(hints.get(parameter.name))
        plain = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if text is None or not plain or parameter.default is not parameter.empty:
            return None
        texts.append(text)
    return tuple(texts)


def annotation_text(annotation: Any) -> str | None:
    """``int | None`` is BIGINT, ``list[str]`` ARRAY<STRING>; None for other annotations."""
    text = _PYTHON.get(annotation) if isinstance(annotation, type) else None
    if text is not None:
        return text
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        not_none = [x for x in inner if x is not type(None)]
        return annotation_text(not_none[0]) if len(not_none) == 1 else None
    texts = [annotation_text(x) for x in inner]
    if None in texts:
        return None
    if origin is list and len(texts) == 1:
        return f"ARRAY<{texts[0]}>"
    if origin is dict and len(texts) == 2:
        return f"MAP<{texts[0]}, {texts[1]}>"
    return None


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}
