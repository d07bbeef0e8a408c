"""CASE, IF, COALESCE, IFNULL, NULLIF, GREATEST, LEAST.

Branches are cast to their common type; only the chosen branch is evaluated. GREATEST and LEAST are
NULL if any argument is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import logic
from tidemill.functions.arrays.api import Entry
from tidemill.functions.coercion import common_type, widest
from tidemill.functions.comparison import comparison_type, equal_sql
from tidemill.functions.sharing import share
from tidemill.functions.signatures import check_count, mismatch
from tidemill.types import logical as t

Types = tuple[t.LogicalType, ...]


def _resolve_case(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """Arguments: condition, value, condition, value, …, else."""
    types = tuple(a.type for a in arguments)
    conditions, values = types[:-1:2], (*types[1:-1:2], types[-1])
    if not all(isinstance(k, t.BooleanType | t.NullType) for k in conditions):
        raise SignatureError("Expected a boolean type")
    wide = common_type(values)
    if wide is None:
        raise SignatureError("Illegal mixing of types in CASE or COALESCE statement")
    casts: list[t.LogicalType] = []
    for condition, value in zip(conditions, values[:-1], strict=True):
        casts += [t.BOOLEAN.with_nullable(condition.nullable), wide.with_nullable(value.nullable)]
    arg_types = (*casts, wide.with_nullable(types[-1].nullable))
    return Resolved(arg_types=arg_types, result=wide)


def _case(call: SparkCall) -> str:
    pairs = zip(call.args[:-1:2], call.args[1:-1:2], strict=True)
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {whens} ELSE {call.args[-1]} END"


def _resolve_if(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("IF", len(arguments), 3, 3)
    condition, *values = (a.type for a in arguments)
    wide = common_type(tuple(values))
    if wide is None or not isinstance(condition, t.BooleanType | t.NullType):
        raise mismatch("IF", arguments, "IF(<BOOLEAN>, <COMMON>, <COMMON>)")
    arg_types = (
        t.BOOLEAN.with_nullable(condition.nullable),
        *(wide.with_nullable(v.nullable) for v in values),
    )
    return Resolved(arg_types=arg_types, result=wide.with_nullable(wide.nullable or condition.nullable))


def _if(call: SparkCall) -> str:
    return f"IF({', '.join(call.args)})"


def _uniform(name: str, least: int, most: int | None, nullable: Callable[[Types], bool]) -> ScalarFunction:
    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), least, most)
        types = tuple(a.type for a in arguments)
        wide = widest(types)
        if wide is None:
            raise SignatureError(
                f"Invalid input arguments of {name}: no common type of {', '.join(str(k) for k in types)}"
            )
        arg_types = tuple(wide.with_nullable(_nullable(k)) for k in types)
        return Resolved(arg_types=arg_types, result=wide.with_nullable(nullable(types)))

    spark, arrays = _UNIFORM[name]
    return ScalarFunction(name=name, resolve=resolve, spark=spark, arrays=arrays)


def _nullable(kind: t.LogicalType) -> bool:
    return kind.nullable or isinstance(kind, t.NullType)


def _all_null(types: Types) -> bool:
    return all(_nullable(k) for k in types)


def _any_null(types: Types) -> bool:
    return any(_nullable(k) for k in types)


def _coalesce(call: SparkCall) -> str:
    return f"coalesce({', '.join(call.args)})"


def _extreme(function: str) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        if len(call.args) == 1:
            return call.args[0]
        extreme = f"{function}({', '.join(call.args)})"
        tests = " OR ".join(
            f"{a} IS NULL" for a, k in zip(call.args, call.arg_types, strict=True) if k.nullable
        )
        return f"IF({tests}, NULL, {extreme})" if tests else extreme

    return spark


def _resolve_nullif(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("NULLIF", len(arguments), 2, 2)
    first, second = (a.type for a in arguments)
    if comparison_type((first, second)) is None:
        pair = f"{first.text()} and {second.text()}"
        raise SignatureError(f"implicit type conversion between {pair} is not supported now")
    return Resolved(arg_types=(first, second), result=first.with_nullable(True))


def _nullif(call: SparkCall) -> str:
    (a, b), (left, right) = call.args, call.arg_types
    if isinstance(right, t.NullType):
        return a
    return share(a, lambda v: f"IF({equal_sql(v, left, b, right, call.zone)}, NULL, {v})")


_UNIFORM: dict[str, tuple[Callable[[SparkCall], str], Entry]] = {
    "COALESCE": (_coalesce, logic.coalesce),
    "IFNULL": (_coalesce, logic.coalesce),
    "GREATEST": (_extreme("greatest"), logic.extreme("max_element_wise")),
    "LEAST": (_extreme("least"), logic.extreme("min_element_wise")),
}

FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="CASE", resolve=_resolve_case, spark=_case),
    ScalarFunction(name="IF", resolve=_resolve_if, spark=_if),
    ScalarFunction(name="NULLIF", resolve=_resolve_nullif, spark=_nullif, arrays=logic.nullif),
    _uniform("COALESCE", 1, None, _all_null),
    _uniform("IFNULL", 2, 2, _all_null),
    _uniform("GREATEST", 1, None, _any_null),
    _uniform("LEAST", 1, None, _any_null),
)
