"""The vocabulary in which function signatures are written: parameter kinds, result rules, resolvers.

``signature("ABS", NUMERIC, result=same_as(0))`` reads: one numeric argument, the result is its type.
A kind says which types it takes and what they are implicitly cast to; a rule derives the result type
from the argument types after those casts. Rules give a NOT NULL type only where all inputs are, unless
wrapped in ``nullable`` (the function itself can give NULL) or ``not_null`` (it never does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SignatureError
from tidemill.functions.coercion import common_type
from tidemill.types import logical as t

Types = tuple[t.LogicalType, ...]
Rule = Callable[[Types], t.LogicalType]


@dataclass(frozen=True, slots=True)
class Kind:
    """A parameter's kind. ``accepts`` empty: any type. ``target``: what an argument is cast to, None:
    it stays as it is. A bare NULL is taken by every kind and becomes ``default``."""

    text: str
    accepts: tuple[type[t.LogicalType], ...] = ()
    target: t.LogicalType | None = None
    default: t.LogicalType = t.STRING

    def takes(self, kind: t.LogicalType) -> bool:
        return not self.accepts or isinstance(kind, (*self.accepts, t.NullType))

    def cast_target(self, kind: t.LogicalType) -> t.LogicalType:
        """The type that an argument of ``kind`` is cast to; its nullability stays."""
        if isinstance(kind, t.NullType):
            return (self.target or self.default).with_nullable(True)
        return kind if self.target is None else self.target.with_nullable(kind.nullable)


_INFIX_WORDS = ("AND", "OR")

ANY = Kind("<ANY>")
NUMERIC = Kind("<NUMERIC>", t.NUMERIC_TYPES, default=t.INT)
INTEGER = Kind("<INTEGER>", t.INTEGER_TYPES, default=t.INT)
AS_INT = Kind("<INTEGER>", t.INTEGER_TYPES, t.INT)
AS_BIGINT = Kind("<INTEGER>", t.INTEGER_TYPES, t.BIGINT)
AS_DOUBLE = Kind("<NUMERIC>", t.NUMERIC_TYPES, t.DOUBLE)
CHARACTER = Kind("<CHARACTER>", t.CHARACTER_TYPES)
BINARY = Kind("<BINARY>", t.BINARY_TYPES, default=t.BYTES)
BOOLEAN = Kind("<BOOLEAN>", (t.BooleanType,), default=t.BOOLEAN)
DATE = Kind("<DATE>", (t.DateType,), default=t.DATE)
TIME = Kind("<TIME>", (t.TimeType,), default=t.TimeType())
TIMESTAMP = Kind("<TIMESTAMP>", t.TIMESTAMP_TYPES, default=t.TimestampType(precision=3))
ARRAY = Kind("<ARRAY>", (t.ArrayType,), default=t.ArrayType(element=t.STRING))
MAP = Kind("<MAP>", (t.MapType,), default=t.MapType(key=t.STRING, value=t.STRING))


def kind_of(text: str, *kinds: Kind) -> Kind:
    """A kind that takes what any of ``kinds`` takes, without casts."""
    return Kind(text, tuple(a for k in kinds for a in k.accepts), default=kinds[0].default)


def fixed(kind: t.LogicalType) -> Rule:
    """Always ``kind``; nullable if an argument is."""
    return lambda types: kind.with_nullable(any(a.nullable for a in types))


def same_as(index: int) -> Rule:
    """The type of argument ``index``; nullable if any argument is."""
    return lambda types: types[index].with_nullable(any(a.nullable for a in types))


def element_of(index: int) -> Rule:
    """The element type of array argument ``index``, nullable as an access past the end is NULL."""

    def rule(types: Types) -> t.LogicalType:
        array = types[index]
        assert isinstance(array, t.ArrayType)
        return array.element.with_nullable(True)

    return rule


def least_restrictive(types: Types) -> t.LogicalType:
    """The type that all of ``types`` widen to; SignatureError if there is none."""
    common = common_type(types)
    if common is None:
        raise SignatureError("Illegal mixing of types: " + ", ".join(calcite_text(a) for a in types))
    return common


def nullable(rule: Rule) -> Rule:
    return lambda types: rule(types).with_nullable(True)


def not_null(rule: Rule) -> Rule:
    return lambda types: rule(types).with_nullable(False)


def signature(
    name: str,
    *kinds: Kind,
    result: Rule,
    optional: int = 0,
    variadic: bool = False,
    forms: str = "",
) -> Resolver:
    """A resolver: one argument per kind; the last ``optional`` may be absent; ``variadic`` repeats
    the last kind any number of times (at least once). ``forms`` overrides the text of the error."""

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), len(kinds) - optional, None if variadic else len(kinds))
        used = kinds + kinds[-1:] * (len(arguments) - len(kinds))
        if not all(k.takes(a.type) for k, a in zip(used, arguments, strict=False)):
            raise mismatch(name, arguments, forms or _form(name, kinds))
        types = tuple(k.cast_target(a.type) for k, a in zip(used, arguments, strict=False))
        return Resolved(arg_types=types, result=result(types))

    return resolve


def overloaded(*resolvers: Resolver) -> Resolver:
    """The first resolver that takes the arguments; the last one's error otherwise."""

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        for resolver in resolvers[:-1]:
            try:
                return resolver(arguments, options)
            except SignatureError:
                continue
        return resolvers[-1](arguments, options)

    return resolve


def uniform(name: str, result: Rule = least_restrictive, least: int = 1, most: int | None = None) -> Resolver:
    """All arguments are cast to their least restrictive type (own nullability kept)."""

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), least, most)
        wide = common_type(tuple(a.type for a in arguments))
        if wide is None:
            raise mismatch(name, arguments, f"{name}(<COMPARABLE_TYPE>, <COMPARABLE_TYPE>)")
        types = tuple(wide.with_nullable(a.type.nullable) for a in arguments)
        return Resolved(arg_types=types, result=result(types))

    return resolve


def check_count(name: str, count: int, least: int, most: int | None) -> None:
    """SignatureError with Flink's wording unless ``least <= count <= most``."""
    if count < least or (most is not None and count > most):
        expected = (
            str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        )
        raise SignatureError(
            f"Invalid number of arguments to function '{name}'. Was expecting {expected} arguments"
        )


def mismatch(name: str, arguments: tuple[Argument, ...], forms: str) -> SignatureError:
    """Flink's "Cannot apply 'F' to arguments of type ..." error."""
    types = [f"<{calcite_text(a.type)}>" for a in arguments]
    infix = len(types) == 2 and (not name[:1].isalpha() or name in _INFIX_WORDS)
    call = f" {name} ".join(types) if infix else _call(name, types)
    supported = "\n".join(f"'{form}'" for form in forms.split("\n"))
    return SignatureError(
        f"Cannot apply '{name}' to arguments of type '{call}'. Supported form(s): {supported}"
    )


def calcite_text(kind: t.LogicalType) -> str:
    """A type as Flink's validator prints it in messages: INTEGER, VARCHAR(2147483647), no nullability."""
    match kind:
        case t.IntType():
            return "INTEGER"
        case t.LengthType():
            return f"{kind.NAME}({kind.length})"
        case t.LocalZonedTimestampType():
            return f"TIMESTAMP_WITH_LOCAL_TIME_ZONE({kind.precision})"
        case t.ArrayType():
            return f"{calcite_text(kind.element)} ARRAY"
        case t.MultisetType():
            return f"{calcite_text(kind.element)} MULTISET"
        case t.MapType():
            return f"({calcite_text(kind.key)}, {calcite_text(kind.value)}) MAP"
        case t.RowType():
            inner = ", ".join(f"{calcite_text(f.type)} {f.name}" for f in kind.fields)
            return f"RecordType({inner})"
    return kind.text()


def with_aliases(function: ScalarFunction, *aliases: str) -> tuple[ScalarFunction, ...]:
    """``function`` and the same under other names."""
    return (function, *(replace(function, name=alias) for alias in aliases))


def _form(name: str, kinds: tuple[Kind, ...]) -> str:
    return _call(name, [k.text for k in kinds])


def _call(name: str, parts: list[str]) -> str:
    if len(parts) == 1 and not name[:1].isalpha():
        return name + parts[0]
    return f"{name}({', '.join(parts)})"
