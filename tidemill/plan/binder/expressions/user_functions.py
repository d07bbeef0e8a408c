"""Calls of user functions: looked up by name, checked against the declaration, types resolved.

If input types are declared, arguments are cast implicitly, as into a sink's column. Otherwise the function
gets its arguments without a cast. Errors have the position of the call.
"""

from __future__ import annotations

import inspect

from sqlglot import exp

from tidemill.errors import Position, SqlSyntaxError, TidemillError, ValidationError
from tidemill.functions.coercion import can_cast_implicitly
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.environment import Environment
from tidemill.plan.binder.expressions import calls
from tidemill.plan.expressions import Expr, UserCall
from tidemill.sql.parser import parse_type
from tidemill.sql.positions import position_of
from tidemill.types import logical as t
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.calls import BoundScalar, BoundTable
from tidemill.user_functions.kinds import (
    UserAggregateFunction,
    UserFunction,
    UserScalarFunction,
    UserTableFunction,
)

Args = tuple[Expr, ...]


def find(context: Context, node: exp.Expr) -> UserFunction | None:
    """The user function that a call names; None for a built-in or unknown one."""
    parts = tuple(str(node.this).split("."))
    if len(parts) > 3:
        return None
    try:
        return context.environment.user_function(parts, context.path(parts))
    except TidemillError as error:
        error.position = error.position or position_of(node)
        raise


def scalar(context: Context, declared: UserFunction, node: exp.Expr, bound_args: Args) -> Expr:
    """A call as an expression. ValidationError if the function is a table function."""
    if not isinstance(declared, UserScalarFunction):
        raise ValidationError(f"Cannot call table function here: '{node.this}'", position=position_of(node))
    args = _arguments(context.environment, declared, node, bound_args)
    bound = BoundScalar(
        name=name_of(context, node),
        body=declared.body,
        version=declared.version,
        vectorized=declared.vectorized,
        deterministic=declared.deterministic,
        arg_types=tuple(a.type for a in args),
        result=_type(declared.result_type, node),
    )
    return UserCall(type=bound.result, function=bound, args=args)


def table(
    context: Context, declared: UserFunction | None, node: exp.Expr, bound_args: Args
) -> tuple[BoundTable, Args]:
    """A call in FROM and its cast arguments. ValidationError if the function is no table function."""
    if declared is None:
        raise calls.unknown_function(context.environment, str(node.this), bound_args, position_of(node))
    if not isinstance(declared, UserTableFunction):
        raise ValidationError(
            f"Function '{node.this}' cannot be used as a table function.", position=position_of(node)
        )
    args = _arguments(context.environment, declared, node, bound_args)
    bound = BoundTable(
        name=name_of(context, node),
        body=declared.body,
        version=declared.version,
        vectorized=declared.vectorized,
        deterministic=declared.deterministic,
        arg_types=tuple(a.type for a in args),
        columns=_columns(tuple(_type(text, node) for text in declared.result_types)),
    )
    return bound, args


def aggregate(
    context: Context, declared: UserAggregateFunction, node: exp.Expr, bound_args: Args
) -> tuple[BoundAggregate, Args]:
    """An aggregate and its cast arguments."""
    args = _arguments(context.environment, declared, node, bound_args)
    bound = BoundAggregate(
        name=name_of(context, node),
        body=declared.body,
        version=declared.version,
        vectorized=declared.vectorized,
        arg_types=tuple(a.type for a in args),
        accumulator=_type(declared.accumulator_type, node).with_nullable(True),
        result=_type(declared.result_type, node),
    )
    return bound, args


def name_of(context: Context, node: exp.Expr) -> str:
    """The function's short name, in lower case if a built-in has the name: plans tell functions by name."""
    name = str(node.this).split(".")[-1]
    is_builtin = context.environment.scalar_function(name) or context.environment.aggregate_function(name)
    return name.lower() if is_builtin else name


def _columns(kinds: tuple[t.LogicalType, ...]) -> t.RowType:
    """One ROW type gives its fields; several types are ``f0``, ``f1`` and so on, as in PyFlink."""
    if len(kinds) == 1 and isinstance(kinds[0], t.RowType):
        return kinds[0]
    return t.RowType(fields=tuple(t.Field(f"f{i}", kind) for i, kind in enumerate(kinds)))


def _type(text: str, node: exp.Expr) -> t.LogicalType:
    try:
        return parse_type(text)
    except (SqlSyntaxError, ValidationError) as error:
        raise ValidationError(
            f"Function '{node.this}' declares '{text}', which is not a type: {error.message}",
            position=position_of(node),
        ) from None


def _arguments(environment: Environment, declared: UserFunction, node: exp.Expr, bound_args: Args) -> Args:
    if declared.input_types is None:
        _check_arity(declared, node, bound_args)
        return tuple(calls.coerce(a, t.STRING) if isinstance(a.type, t.NullType) else a for a in bound_args)
    parameter_types = tuple(_type(text, node) for text in declared.input_types)
    if len(parameter_types) != len(bound_args):
        error = calls.unknown_function(environment, str(node.this), bound_args, position_of(node))
        raise ValidationError(
            f"{error.message}.\nSupported signatures are:\n{_signature(node, parameter_types)}",
            position=error.position,
        )
    for index, (arg, kind) in enumerate(zip(bound_args, parameter_types, strict=True)):
        if not can_cast_implicitly(arg.type, kind):
            raise _type_mismatch(node, bound_args, parameter_types, index, position_of(node))
    return tuple(calls.coerce(a, kind) for a, kind in zip(bound_args, parameter_types, strict=True))


def _type_mismatch(
    node: exp.Expr,
    bound_args: Args,
    parameter_types: tuple[t.LogicalType, ...],
    index: int,
    position: Position | None,
) -> ValidationError:
    types = ", ".join(str(a.type) for a in bound_args)
    return ValidationError(
        f"Invalid function call:\n{node.this}({types})\n"
        f"Expected signatures are:\n{_signature(node, parameter_types)}\n"
        f"Invalid argument type at position {index}. Data type {parameter_types[index]} expected but"
        f" {bound_args[index].type} passed.",
        position=position,
    )


def _signature(node: exp.Expr, parameter_types: tuple[t.LogicalType, ...]) -> str:
    return f"{node.this}({', '.join(f'arg{i} => {kind}' for i, kind in enumerate(parameter_types))})"


def _check_arity(declared: UserFunction, node: exp.Expr, bound_args: Args) -> None:
    """ValidationError if the Python function's signature does not take that many arguments."""
    hidden = 1 if isinstance(declared, UserAggregateFunction) else 0
    called = declared.body.accumulate if hidden else declared.body
    try:
        inspect.signature(called).bind(*(None,) * (hidden + len(bound_args)))
    except ValueError:
        return
    except TypeError as error:
        raise ValidationError(
            f"Function '{node.this}' does not take {len(bound_args)} arguments: {error}",
            position=position_of(node),
        ) from None
