"""Converts one JSON value to a value of a Flink type, by the rules of Flink's JSON reader, type by type.

Numbers are ``Number``, which keeps their text, because STRING columns return the text and DECIMAL needs
all digits. If a value does not fit, ValueError (or ArithmeticError) is raised; with ``lenient`` the value
is NULL instead, at any depth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from tidemill.connectors.formats.text_scalars import TextRules, parse
from tidemill.functions.text.numbers import java_double
from tidemill.types import logical as t


class Number(str):
    """The text of a JSON number."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRules:
    text: TextRules
    lenient: bool = False
    fail_on_missing: bool = False


class MissingField(ValueError):
    """An object lacks a field, and json.fail-on-missing-field is set."""


class FieldError(ValueError):
    """``field``: the path of the field whose ``value`` does not fit."""

    def __init__(self, field: str, value: Any) -> None:
        super().__init__(f"Fail to deserialize at field: {field}.")
        self.field = field
        self.value = value


def convert(kind: t.LogicalType, node: Any, rules: JsonRules) -> Any:
    """``node`` as ``kind``; None stays None."""
    if node is None:
        return None
    try:
        return _convert(kind, node, rules)
    except MissingField:
        raise
    except (ValueError, ArithmeticError):
        if rules.lenient:
            return None
        raise


def convert_row(fields: tuple[t.Field, ...], node: dict[str, Any], rules: JsonRules) -> dict[str, Any]:
    """The fields of an object by name; FieldError names the field that failed."""
    row = {}
    for field in fields:
        if field.name not in node:
            if rules.fail_on_missing:
                raise MissingField("Some field is missing in the JSON data.")
            continue
        try:
            row[field.name] = convert(field.type, node[field.name], rules)
        except MissingField:
            raise
        except FieldError as e:
            raise FieldError(f"{field.name}.{e.field}", e.value) from None
        except (ValueError, ArithmeticError):
            raise FieldError(field.name, node[field.name]) from None
    return row


def text_of(node: Any) -> str:
    """A scalar's own text; ValueError for objects and arrays."""
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, str):
        return node
    raise ValueError("an object or array where a scalar is expected")


def _encodable(text: str) -> str:
    """``text`` with lone surrogates, which JSON can escape, replaced by '?' as in Java."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@singledispatch
def _convert(kind: t.LogicalType, node: Any, rules: JsonRules) -> Any:
    return parse(kind, text_of(node), rules.text)


@_convert.register(t.CharType)
@_convert.register(t.VarCharType)
def _(kind: t.LogicalType, node: Any, rules: JsonRules) -> str:
    return _encodable(compact(node) if isinstance(node, dict | list) else text_of(node))


@_convert.register(t.IntType)
@_convert.register(t.BigIntType)
def _(kind: t.LogicalType, node: Any, rules: JsonRules) -> Any:
    """A JSON number with a fraction or exponent is truncated; a string must be a whole number."""
    if isinstance(node, Number) and not node.lstrip("-").isdigit():
        value = float(node)
        return parse(kind, str(int(value)), rules.text)
    return parse(kind, text_of(node), rules.text)


@_convert.register
def _(kind: t.ArrayType, node: Any, rules: JsonRules) -> list[Any]:
    if not isinstance(node, list):
        raise ValueError("not an array")
    return [convert(kind.element, item, rules) for item in node]


@_convert.register
def _(kind: t.MapType, node: Any, rules: JsonRules) -> list[dict[str, Any]]:
    if not isinstance(node, dict):
        raise ValueError("not an object")
    return [{"key": _encodable(k), "value": convert(kind.value, v, rules)} for k, v in node.items()]


@_convert.register
def _(kind: t.MultisetType, node: Any, rules: JsonRules) -> list[dict[str, Any]]:
    return [*_convert(t.MapType(key=kind.element, value=t.INT), node, rules)]


@_convert.register
def _(kind: t.RowType, node: Any, rules: JsonRules) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ValueError("not an object")
    return convert_row(kind.fields, node, rules)


def compact(node: Any) -> str:
    """The JSON text of a value without blanks, as Jackson prints a tree: ``{"a":[1,null]}``."""
    if isinstance(node, Number):
        return _number_text(node)
    if isinstance(node, dict):
        return "{" + ",".join(f"{compact(str(k))}:{compact(v)}" for k, v in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(compact, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


def _number_text(number: Number) -> str:
    """Whole numbers are unchanged; other numbers are spelled as Java prints a double."""
    return str(number) if number.lstrip("-").isdigit() else java_double(float(number))
