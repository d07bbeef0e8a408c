"""Calls of functions and operators: the registry resolves types, and the binder adds implicit casts.

The only place that turns a ``SignatureError`` into a ValidationError with the call's position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.functions.api import GROUPED, AggregateFunction, Argument, Resolved, Resolver, SignatureError
from tidemill.plan.binder.environment import Environment
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.function_hints import function_hint
from tidemill.plan.expressions import Call, Cast, Expr, FieldAccess, Literal
from tidemill.plan.rewrite import map_expr
from tidemill.types import logical as t

Options = tuple[tuple[str, str], ...]


def argument(expr: Expr) -> Argument:
    """The type and constant value of an expression, for type inference."""
    if isinstance(expr, Literal):
        return Argument(type=expr.type, literal=expr.value, is_literal=True)
    return Argument(type=expr.type)


def coerce(expr: Expr, target: t.LogicalType) -> Expr:
    """``expr`` as type ``target``, its nullability unchanged. A constant becomes a constant of that type."""
    target_type = target.with_nullable(expr.type.nullable)
    if expr.type == target_type:
        return expr
    constant = literals.widened(expr, target) if isinstance(expr, Literal) else None
    return constant or Cast(type=target_type, operand=expr, implicit=True)


def resolve(
    resolver: Resolver, args: tuple[Expr, ...], options: Mapping[str, str], position: Position | None
) -> tuple[Resolved, tuple[Expr, ...]]:
    """The resolved types and the arguments cast to them."""
    try:
        resolved = resolver(tuple(argument(a) for a in args), options)
    except SignatureError as error:
        raise ValidationError(str(error), position=position) from None
    except NotSupportedError as error:
        raise NotSupportedError(error.message, position=position, hint=error.hint) from None
    cast = tuple(coerce(a, kind) for a, kind in zip(args, resolved.arg_types, strict=True))
    return resolved, cast


def call(
    environment: Environment,
    name: str,
    args: tuple[Expr, ...],
    position: Position | None = None,
    options: Options = (),
    *,
    written: str = "",
) -> Expr:
    """A call of the scalar function or operator ``name``; ``written``: its name in SQL, if it differs."""
    function = environment.scalar_function(name)
    if function is None:
        raise unknown_function(environment, written or name, args, position)
    resolved, cast = resolve(function.resolve, args, dict(options), position)
    # A value computed from a time attribute is no time attribute: no watermark covers the value.
    result_type = resolved.result if not args else t.without_attribute(resolved.result)
    return Call(type=result_type, function=function.name, args=cast, options=options)


def unknown_function(
    environment: Environment, name: str, args: tuple[Expr, ...], position: Position | None
) -> ValidationError:
    """Flink's "No match found for function signature F(<FAMILY>, ...)"."""
    families = ", ".join(f"<{family_text(a.type)}>" for a in args)
    return ValidationError(
        f"No match found for function signature {name}({families})",
        position=position,
        hint=function_hint(name, environment.function_names()),
    )


def aggregate_types(
    function: AggregateFunction,
    args: tuple[Expr, ...],
    options: Options,
    position: Position | None,
    *,
    grouped: bool,
) -> tuple[t.LogicalType, tuple[Expr, ...]]:
    """The result type and the cast arguments. ``grouped``: every group has at least one row."""
    all_options = {**dict(options), GROUPED: "TRUE" if grouped else "FALSE"}
    resolved, cast = resolve(function.resolve, args, all_options, position)
    return t.without_attribute(resolved.result), cast


_FAMILIES: tuple[tuple[tuple[type[t.LogicalType], ...], str], ...] = (
    (t.CHARACTER_TYPES, "CHARACTER"),
    (t.NUMERIC_TYPES, "NUMERIC"),
    (t.BINARY_TYPES, "BINARY"),
    ((t.BooleanType,), "BOOLEAN"),
    ((t.DateType,), "DATE"),
    ((t.TimeType,), "TIME"),
    ((t.TimestampType,), "TIMESTAMP"),
    ((t.LocalZonedTimestampType,), "TIMESTAMP"),
    ((t.YearMonthIntervalType,), "INTERVAL_YEAR_MONTH"),
    ((t.DayTimeIntervalType,), "INTERVAL_DAY_TIME"),
    ((t.ArrayType,), "ARRAY"),
    ((t.MapType,), "MAP"),
    ((t.MultisetType,), "MULTISET"),
    ((t.RowType,), "ROW"),
    ((t.NullType,), "NULL"),
)


def family_text(kind: t.LogicalType) -> str:
    """The type family, as Flink names it in signatures of unknown functions."""
    return next((text for family, text in _FAMILIES if isinstance(kind, family)), "ANY")


@dataclass(frozen=True, slots=True)
class Retype:
    """Derives types again after an input became nullable, as by an outer join or GROUPING SETS: resolves
    every call again from its arguments. Without an environment it changes nothing."""

    environment: Environment | None

    @classmethod
    def none(cls) -> Retype:
        return cls(None)

    def fix(self, expr: Expr) -> Expr:
        return expr if self.environment is None else map_expr(expr, self._one)

    def _one(self, expr: Expr) -> Expr:
        assert self.environment is not None
        if isinstance(expr, Call):
            return call(self.environment, expr.function, expr.args, None, expr.options)
        if isinstance(expr, Cast) and expr.operand.type.nullable:
            return replace(expr, type=expr.type.with_nullable(True))
        if isinstance(expr, FieldAccess):
            row = expr.operand.type
            assert isinstance(row, t.RowType)
            field_type = row.fields[expr.index].type
            return replace(expr, type=field_type.with_nullable(field_type.nullable or row.nullable))
        return expr
