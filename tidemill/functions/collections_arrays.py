"""ARRAY_* functions. NULL elements are values: they are equal to each other and can be searched for.

A needle is cast to the element type, and must be castable to it without loss of range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import (
    Argument,
    Resolved,
    Resolver,
    ScalarFunction,
    SignatureError,
    SparkCall,
    Translation,
)
from tidemill.functions.coercion import common_type
from tidemill.functions.sharing import share
from tidemill.functions.signatures import (
    ARRAY,
    AS_INT,
    BOOLEAN,
    CHARACTER,
    check_count,
    element_of,
    fixed,
    same_as,
    signature,
)
from tidemill.functions.spark_text import keep, template
from tidemill.types import logical as t

_UNORDERED = (t.ArrayType, t.MapType, t.MultisetType, t.RowType, t.BooleanType, *t.BINARY_TYPES)
_Rule = Callable[[t.ArrayType, tuple[t.LogicalType, ...]], t.LogicalType]


def _array(name: str, argument: Argument, form: str) -> t.ArrayType:
    if isinstance(argument.type, t.NullType):
        return t.ArrayType(element=t.STRING)
    if not isinstance(argument.type, t.ArrayType):
        raise SignatureError(f"Invalid input arguments. Expected {form}")
    return argument.type


def _with_needle(name: str, result: _Rule) -> Resolver:
    """(array, value of the element type)."""

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 2, 2)
        array = _array(name, arguments[0], f"{name}(haystack <ARRAY>, needle <ARRAY ELEMENT>)")
        needle = arguments[1].type
        if not _becomes(needle, array.element):
            raise SignatureError(
                f"Invalid input arguments. {name}: a {needle.text()} is no element of {array.text()}"
            )
        null = needle.nullable or isinstance(needle, t.NullType)
        needle_type = needle if isinstance(needle, t.CHARACTER_TYPES) else array.element
        types = (array, needle_type.with_nullable(null))
        return Resolved(arg_types=types, result=result(array, types))

    return resolve


def _becomes(needle: t.LogicalType, element: t.LogicalType) -> bool:
    """Whether a value of type ``needle`` is implicitly one of ``element``."""
    if isinstance(element, t.DecimalType) and isinstance(needle, t.EXACT_TYPES):
        return True
    if isinstance(element, (*t.CHARACTER_TYPES, *t.BINARY_TYPES)):
        return common_type((needle, element)) is not None
    common = common_type((needle, element))
    return common is not None and common.with_nullable(True) == element.with_nullable(True)


def _any_null(types: tuple[t.LogicalType, ...]) -> bool:
    return any(kind.nullable for kind in types)


def _grown(array: t.ArrayType, types: tuple[t.LogicalType, ...]) -> t.LogicalType:
    element = array.element.with_nullable(array.element.nullable or types[1].nullable)
    return t.ArrayType(element=element, nullable=_any_null(types))


def _same(array: t.ArrayType, _: tuple[t.LogicalType, ...]) -> t.LogicalType:
    return array


def _combined(name: str, least: int, most: int | None) -> Resolver:
    """Arrays of a common type."""

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), least, most)
        types = tuple(_array(name, a, f"{name}(<ARRAY>, ...)") for a in arguments)
        common = common_type(types)
        if common is None:
            raise SignatureError(
                f"Could not find a common type for arguments: [{', '.join(str(kind) for kind in types)}]"
            )
        return Resolved(
            arg_types=tuple(common.with_nullable(kind.nullable) for kind in types),
            result=common.with_nullable(_any_null(types)),
        )

    return resolve


def _ordered(name: str, base: Resolver) -> Resolver:
    """``base`` for arrays whose elements have an order."""

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        resolved = base(arguments, options)
        array = resolved.arg_types[0]
        if isinstance(array, t.ArrayType) and isinstance(array.element, _UNORDERED):
            raise SignatureError(
                f"Type '{array.element}' should support both 'EQUALS' and 'ORDER' comparison with itself."
            )
        return resolved

    return resolve


def _contains(call: SparkCall) -> str:
    array, needle = call.args
    if call.arg_types[1].nullable:
        return f"exists({array}, x -> x <=> {needle})"
    return f"CASE WHEN {array} IS NOT NULL THEN coalesce(array_contains({array}, {needle}), FALSE) END"


def _remove(call: SparkCall) -> str:
    array, needle = call.args
    if call.arg_types[1].nullable:
        return keep(array, lambda e: f"NOT ({e} <=> {needle})")
    return f"array_remove({array}, {needle})"


def _slice(call: SparkCall) -> str:
    """ARRAY_SLICE(array, start[, end]), inclusive; negative counts from the end, 0 is 1."""
    array, start, *end = call.args
    return share(array, lambda a: _slice_of(a, start, end[0] if end else f"array_size({a})"))


def _slice_of(array: str, start: str, end: str) -> str:
    size = f"array_size({array})"
    first = f"greatest({_from_end(start, size)}, 1)"
    last = f"least({_from_end(end, size)}, {size})"
    has_bounds = f"{start} IS NOT NULL AND {end} IS NOT NULL"
    return f"CASE WHEN {has_bounds} THEN slice({array}, {first}, greatest({last} - {first} + 1, 0)) END"


def _from_end(position: str, size: str) -> str:
    absolute = f"CASE WHEN {position} < 0 THEN {position} + {size} + 1 ELSE {position} END"
    return f"coalesce(nullif({absolute}, 0), 1)"


def _sort(call: SparkCall) -> str:
    """ARRAY_SORT(array[, ascending[, nulls first]]); NULL is lowest unless said otherwise."""
    array, *flags = call.args
    known = call.literals[1:]
    if all(isinstance(flag, bool) for flag in known):
        return _sorted(array, *(bool(flag) for flag in known))
    ascending, nulls_first = flags[0], flags[-1]
    cases = [
        f"WHEN {'' if up else 'NOT '}{ascending} AND {'' if low else 'NOT '}{nulls_first} "
        f"THEN {_sorted(array, up, low)}"
        for up in (True, False)
        for low in (True, False)
    ]
    return f"CASE {' '.join(cases)} END"


def _sorted(array: str, ascending: bool = True, nulls_first: bool | None = None) -> str:
    if nulls_first is None or nulls_first == ascending:
        return f"sort_array({array}, {str(ascending).lower()})"
    return f"array_sort({array})" if ascending else f"reverse(array_sort({array}))"


def _needle(name: str, result: _Rule, spark: Translation) -> ScalarFunction:
    return ScalarFunction(name=name, resolve=_with_needle(name, result), spark=spark)


def _many(name: str, spark: str, least: int = 2, most: int | None = 2) -> ScalarFunction:
    return ScalarFunction(name=name, resolve=_combined(name, least, most), spark=template(spark))


def _extreme(name: str) -> ScalarFunction:
    resolve = _ordered(name, signature(name, ARRAY, result=element_of(0)))
    return ScalarFunction(name=name, resolve=resolve, spark=template(f"{name.lower()}({{0}})"))


def _one(name: str, spark: str) -> ScalarFunction:
    return ScalarFunction(name=name, resolve=signature(name, ARRAY, result=same_as(0)), spark=template(spark))


def _resolve_join(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    array = arguments[0].type if arguments else None
    if isinstance(array, t.ArrayType) and not isinstance(array.element, (*t.CHARACTER_TYPES, t.NullType)):
        raise SignatureError(f"Invalid input arguments. ARRAY_JOIN takes ARRAY<STRING>, not {array.text()}")
    base = signature("ARRAY_JOIN", ARRAY, CHARACTER, CHARACTER, result=fixed(t.STRING), optional=1)
    return base(arguments, options)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    _needle("ARRAY_APPEND", _grown, template("array_append({0}, {1})")),
    _needle("ARRAY_PREPEND", _grown, template("array_prepend({0}, {1})")),
    _needle("ARRAY_CONTAINS", lambda array, _: t.BooleanType(nullable=array.nullable), _contains),
    _needle(
        "ARRAY_POSITION",
        lambda _, types: t.IntType(nullable=_any_null(types)),
        template("CAST(array_position({0}, {1}) AS INT)"),
    ),
    _needle("ARRAY_REMOVE", _same, _remove),
    _many("ARRAY_CONCAT", "concat({all})", least=1, most=None),
    _many("ARRAY_EXCEPT", "array_except({0}, {1})"),
    _many("ARRAY_INTERSECT", "array_intersect({0}, {1})"),
    _many("ARRAY_UNION", "array_union({0}, {1})"),
    _one("ARRAY_DISTINCT", "array_distinct({0})"),
    _one("ARRAY_REVERSE", "reverse({0})"),
    _extreme("ARRAY_MAX"),
    _extreme("ARRAY_MIN"),
    ScalarFunction(name="ARRAY_JOIN", resolve=_resolve_join, spark=template("array_join({all})")),
    ScalarFunction(
        name="ARRAY_SLICE",
        resolve=signature("ARRAY_SLICE", ARRAY, AS_INT, AS_INT, result=same_as(0), optional=1),
        spark=_slice,
    ),
    ScalarFunction(
        name="ARRAY_SORT",
        resolve=_ordered(
            "ARRAY_SORT", signature("ARRAY_SORT", ARRAY, BOOLEAN, BOOLEAN, result=same_as(0), optional=2)
        ),
        spark=_sort,
    ),
)
