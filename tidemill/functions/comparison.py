"""Comparison: = <> < > <= >=, IS [NOT] DISTINCT FROM, BETWEEN, IN.

Three-valued; what is equal is decided in ``types.values`` (Spark holds NaN equal to itself and greatest);
text meets a date, time,
timestamp or boolean by being cast to it; a number it meets in < > <= >= BETWEEN and IN, never in = and <>.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.arrays import logic
from tidemill.functions.casts import cast_sql
from tidemill.functions.coercion import common_type, widest
from tidemill.functions.sharing import share
from tidemill.functions.signatures import check_count, mismatch
from tidemill.functions.values import marked, matching, with_one_zero
from tidemill.types import logical as t
from tidemill.types.physical import quote, spark_type
from tidemill.types.values import has_floats, has_two_zeros

OPERATORS = ("=", "<>", "<", ">", "<=", ">=")
_FROM_TEXT = (t.DateType, t.TimeType, *t.TIMESTAMP_TYPES, t.BooleanType, *t.INTERVAL_TYPES)


def comparison_type(types: tuple[t.LogicalType, ...], *, ordering: bool = False) -> t.LogicalType | None:
    """The type in which values of ``types`` are compared; None if they are not comparable.

    ``ordering``: for < > <= >=, where text also meets numbers.
    """
    typed = tuple(k for k in types if not isinstance(k, t.NullType))
    others = tuple(k for k in typed if not isinstance(k, t.CHARACTER_TYPES))
    if others and len(others) < len(typed):
        common = comparison_type(others)
        readable = (*_FROM_TEXT, *t.NUMERIC_TYPES) if ordering else _FROM_TEXT
        return common if isinstance(common, readable) else None
    if any(isinstance(k, t.LocalZonedTimestampType) for k in typed):
        return widest(typed)
    if typed and all(isinstance(k, t.NUMERIC_TYPES) for k in typed):
        return t.DOUBLE if _mixes_decimal_and_float(typed) else widest(typed)
    return common_type(typed) if typed else t.NullType()


def _mixes_decimal_and_float(types: tuple[t.LogicalType, ...]) -> bool:
    return any(isinstance(k, t.DecimalType) for k in types) and any(
        isinstance(k, t.APPROXIMATE_TYPES) for k in types
    )


def _cast_types(types: tuple[t.LogicalType, ...], wide: t.LogicalType) -> tuple[t.LogicalType, ...]:
    """Only what Spark would not widen by itself is cast, so that column predicates stay bare."""
    return tuple(_operand(k, wide) for k in types)


def _operand(kind: t.LogicalType, wide: t.LogicalType) -> t.LogicalType:
    exact = isinstance(kind, t.EXACT_TYPES) and isinstance(wide, t.EXACT_TYPES)
    if exact or (type(kind) is type(wide) and not isinstance(kind, t.COLLECTION_TYPES)):
        return kind
    if isinstance(kind, t.CHARACTER_TYPES) and isinstance(wide, t.CHARACTER_TYPES):
        return kind
    return wide.with_nullable(kind.nullable or isinstance(kind, t.NullType))


def _resolver(
    name: str, least: int, most: int | None, *, nulls: bool = True, ordering: bool = False
) -> Resolver:
    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), least, most)
        types = tuple(a.type for a in arguments)
        wide = comparison_type(types, ordering=ordering)
        if wide is None:
            raise _incomparable(name, arguments)
        nullable = nulls and any(map(_can_be_unknown, types))
        result = t.BOOLEAN.with_nullable(nullable)
        return Resolved(arg_types=_cast_types(types, wide), result=result)

    return resolve


def _resolve_in(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    """Where text meets numbers the left side's type wins: numbers are looked for among texts as text."""
    check_count("IN", len(arguments), 2, None)
    left, *listed = (a.type for a in arguments)
    if common_type(listed) is None:
        raise SignatureError("Values in expression list must have compatible types")
    numbers = all(isinstance(k, (*t.NUMERIC_TYPES, t.NullType)) for k in listed)
    if isinstance(left, t.CHARACTER_TYPES) and numbers:
        texts = tuple(t.STRING.with_nullable(k.nullable) for k in listed)
        result = t.BOOLEAN.with_nullable(left.nullable or any(map(_can_be_unknown, listed)))
        return Resolved(arg_types=(left, *texts), result=result)
    mixed = isinstance(left, t.NUMERIC_TYPES)
    return _resolver("IN", 2, None, ordering=mixed)(arguments, options)


def _can_be_unknown(kind: t.LogicalType) -> bool:
    """Whether comparing with a value of ``kind`` can be NULL: of ROWs where a field can."""
    if isinstance(kind, t.RowType):
        return kind.nullable or any(_can_be_unknown(f.type) for f in kind.fields)
    return kind.nullable or isinstance(kind, t.NullType)


def _incomparable(name: str, arguments: tuple[Argument, ...]) -> SignatureError:
    first, second = arguments[0].type, arguments[-1].type
    kinds = {isinstance(k, t.CHARACTER_TYPES) for k in (first, second)}
    if kinds == {True, False} and isinstance(first, t.NUMERIC_TYPES) != isinstance(second, t.NUMERIC_TYPES):
        pair = f"{first.text()} and {second.text()}"
        return SignatureError(f"implicit type conversion between {pair} is not supported now")
    return mismatch(name, arguments, f"<COMPARABLE_TYPE> {name} <COMPARABLE_TYPE>")


def compare_sql(operator: str, a: str, left: t.LogicalType, b: str, right: t.LogicalType) -> str:
    """``a operator b`` for texts of comparable types, three-valued."""
    if isinstance(left, t.RowType) and isinstance(right, t.RowType):
        return _compare_rows(operator, a, left, b, right)
    if isinstance(left, t.COLLECTION_TYPES):
        return f"({marked(a, left)} {operator} {marked(b, right)})"
    if not isinstance(left, t.APPROXIMATE_TYPES) and not isinstance(right, t.APPROXIMATE_TYPES):
        return f"({a} {operator} {b})"
    unknown = left.nullable or right.nullable
    return share(a, lambda x: share(b, lambda y: _compare_floats(operator, x, y, unknown)))


def _compare_floats(operator: str, a: str, b: str, nullable: bool) -> str:
    unordered = "TRUE" if operator == "<>" else "FALSE"
    if nullable:
        unordered = f"IF({a} IS NULL OR {b} IS NULL, NULL, {unordered})"
    return f"IF(isnan({a}) OR isnan({b}), {unordered}, ({a} {operator} {b}))"


def _compare_rows(operator: str, a: str, left: t.RowType, b: str, right: t.RowType) -> str:
    """Spark's own ``=`` of structs, along which it joins, takes NULL for one with NULL inside of them."""
    if operator not in ("=", "<>"):
        raise SignatureError(f"ROW values cannot be compared with '{operator}'")
    if not has_floats(left) and not has_floats(right):
        b = b if spark_type(left) == spark_type(right) else f"CAST({b} AS {spark_type(left)})"
        return f"({a} {operator} {b})"

    def fields(x: str, y: str) -> str:
        same = _same_fields(x, left, y, right)
        return f"IF({x} IS NULL OR {y} IS NULL, NULL, {same if operator == '=' else f'NOT {same}'})"

    return share(a, lambda x: share(b, lambda y: fields(x, y)))


def _same_fields(a: str, left: t.RowType, b: str, right: t.RowType) -> str:
    """Whether all fields are equal or NULL on both sides; never NULL."""
    parts = (
        same_sql(f"({a}).{quote(x.name)}", x.type, f"({b}).{quote(y.name)}", y.type)
        for x, y in zip(left.fields, right.fields, strict=True)
    )
    return f"({' AND '.join(parts)})"


def same_sql(a: str, left: t.LogicalType, b: str, right: t.LogicalType) -> str:
    """``a IS NOT DISTINCT FROM b`` for texts of comparable types."""
    if isinstance(left, t.APPROXIMATE_TYPES):
        return f"(({a} <=> {b}) AND coalesce(NOT isnan({a}), TRUE))"
    if isinstance(left, t.RowType) and isinstance(right, t.RowType) and has_two_zeros(left):
        return f"(({a} IS NULL AND {b} IS NULL) OR coalesce({compare_sql('=', a, left, b, right)}, FALSE))"
    return f"({marked(a, left)} <=> {marked(b, right)})"


def _binary(operator: str) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        a, b = call.args
        left, right = call.arg_types
        return compare_sql(operator, a, left, b, right)

    return spark


def _distinct(negation: str) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        (a, b), (left, right) = call.args, call.arg_types
        return f"({negation}{same_sql(a, left, b, right)})"

    return spark


def _between(call: SparkCall) -> str:
    value, low, high = call.args
    kind, low_kind, high_kind = call.arg_types

    def inside(v: str, lo: str, lo_kind: t.LogicalType, hi: str, hi_kind: t.LogicalType) -> str:
        return f"({compare_sql('>=', v, kind, lo, lo_kind)} AND {compare_sql('<=', v, kind, hi, hi_kind)})"

    def body(v: str) -> str:
        straight = inside(v, low, low_kind, high, high_kind)
        if call.options.get("symmetric", "").upper() not in ("TRUE", "SYMMETRIC"):
            return straight
        return f"({straight} OR {inside(v, high, high_kind, low, low_kind)})"

    return share(value, body)


def _in(call: SparkCall) -> str:
    value, *options = call.args
    kind, *kinds = call.arg_types
    if not isinstance(kind, t.RowType) and not has_floats(kind):
        return f"({value} IN ({', '.join(options)}))"
    return share(
        value,
        lambda v: (
            "("
            + " OR ".join(compare_sql("=", v, kind, o, k) for o, k in zip(options, kinds, strict=True))
            + ")"
        ),
    )


def equal_sql(a: str, left: t.LogicalType, b: str, right: t.LogicalType, zone: str) -> str:
    """``a = b`` of any comparable types, casts included."""
    wide = comparison_type((left, right))
    if wide is None:
        raise SignatureError(
            f"implicit type conversion between {left.text()} and {right.text()} is not supported now"
        )
    x, y = _cast_types((left, right), wide)
    cast_a = cast_sql(a, left, x, safe=False, zone=zone)
    return compare_sql("=", cast_a, x, cast_sql(b, right, y, safe=False, zone=zone), y)


MATCHING = "$MATCHING"
"""A FLOAT as the key of an equality join: see ``values.matching``."""


SAME = "$SAME"
"""Identity, NULL with NULL, where plans join what a DISTINCT of theirs took apart."""


ONE_ZERO = "$ONE_ZERO"
"""What plans group by where the groups are joined by ``=``: see ``values.with_one_zero``."""


def _resolve_same(_: tuple[Argument, ...], __: Mapping[str, str]) -> Resolved:
    raise SignatureError(f"{SAME} is made by plans alone")


def _same(call: SparkCall) -> str:
    a, b = map(marked, call.args, call.arg_types)
    return f"({a} <=> {b})"


def _resolve_one_zero(_: tuple[Argument, ...], __: Mapping[str, str]) -> Resolved:
    raise SignatureError(f"{ONE_ZERO} is made by plans alone")


def _resolve_matching(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    (kind,) = (a.type for a in arguments)
    return Resolved(arg_types=(kind,), result=kind.with_nullable(True))


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name=SAME, resolve=_resolve_same, spark=_same),
    ScalarFunction(
        name=ONE_ZERO,
        resolve=_resolve_one_zero,
        spark=lambda call: with_one_zero(call.args[0], call.arg_types[0]),
    ),
    ScalarFunction(
        name=MATCHING,
        resolve=_resolve_matching,
        spark=lambda call: matching(call.args[0], call.arg_types[0]),
    ),
    *(
        ScalarFunction(
            name=o,
            resolve=_resolver(o, 2, 2, ordering=o not in ("=", "<>")),
            spark=_binary(o),
            arrays=logic.compare(o),
        )
        for o in OPERATORS
    ),
    ScalarFunction(
        name="IS DISTINCT FROM",
        resolve=_resolver("IS DISTINCT FROM", 2, 2, nulls=False),
        spark=_distinct("NOT "),
        arrays=logic.distinct(negated=False),
    ),
    ScalarFunction(
        name="IS NOT DISTINCT FROM",
        resolve=_resolver("IS NOT DISTINCT FROM", 2, 2, nulls=False),
        spark=_distinct(""),
        arrays=logic.distinct(negated=True),
    ),
    ScalarFunction(
        name="BETWEEN",
        resolve=_resolver("BETWEEN", 3, 3, ordering=True),
        spark=_between,
        arrays=logic.between,
    ),
    ScalarFunction(name="IN", resolve=_resolve_in, spark=_in, arrays=logic.is_in),
)
