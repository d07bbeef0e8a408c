"""The decorators of user functions, ``udf``, ``udtf`` and ``udaf``, with PyFlink's arguments.

With ``func_type='general'`` (the default, as in PyFlink) the function gets Python values, row by row. With
``'arrow'`` it gets ``pyarrow`` arrays, with one value per row of a batch. Types are Flink's type texts or
``pyarrow`` types. A declared function can still be called from Python. A job refuses state
that a function of another ``version`` has made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import pyarrow as pa

from tidemill.user_functions.annotations import parameter_texts, result_text, type_text
from tidemill.user_functions.kinds import (
    AggregateFunction,
    DeclarationError,
    Merging,
    UserAggregateFunction,
    UserScalarFunction,
    UserTableFunction,
)

TypeSpec: TypeAlias = "str | pa.DataType"
FUNC_TYPES = ("general", "arrow")


@overload
def udf(
    f: None = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Callable[[Any], UserScalarFunction]: ...
@overload
def udf(
    f: Any,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> UserScalarFunction: ...
def udf(
    f: Any = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Any:
    """Declares a scalar function: ``@udf(result_type='BIGINT')`` or ``udf(f, result_type=...)``.

    ``f`` is a function or an object with ``eval``. Missing types come from the function's annotations
    (``int`` is BIGINT, ``str`` is STRING, ...). With ``func_type='arrow'`` the function takes one array per
    argument and returns one array of the same length. DeclarationError if no function can be declared.

    >>> @udf
    ... def plus_one(n: int) -> int:
    ...     return n + 1
    """

    def declare(target: Any) -> UserScalarFunction:
        body = _body(target)
        result = result_text(body) if result_type is None else type_text(result_type)
        if result is None:
            raise DeclarationError(f"udf {_name(target)}: result_type is missing")
        return UserScalarFunction(
            name=_name(target),
            body=body,
            input_types=_inputs(body, input_types, func_type),
            vectorized=_vectorized(target, func_type),
            deterministic=deterministic,
            version=version,
            result_type=result,
        )

    return declare if f is None else declare(f)


@overload
def udtf(
    f: None = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_types: TypeSpec | Sequence[TypeSpec] | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Callable[[Any], UserTableFunction]: ...
@overload
def udtf(
    f: Any,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_types: TypeSpec | Sequence[TypeSpec] | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> UserTableFunction: ...
def udtf(
    f: Any = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_types: TypeSpec | Sequence[TypeSpec] | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Any:
    """Declares a table function: ``@udtf(result_types=['STRING', 'INT'])``.

    For each input row the function yields tuples, or returns an iterable of tuples. With a single result
    column it yields plain values. None means no rows. With ``func_type='arrow'`` the function takes arrays
    and returns a list array with one entry per input row: lists of values for a single column, otherwise
    lists of structs, by position.

    >>> @udtf(result_types=["STRING", "INT"])
    ... def words(line: str):
    ...     for word in line.split():
    ...         yield word, len(word)
    """

    def declare(target: Any) -> UserTableFunction:
        if result_types is None:
            raise DeclarationError(f"udtf {_name(target)}: result_types is missing")
        body = _body(target)
        return UserTableFunction(
            name=_name(target),
            body=body,
            input_types=_inputs(body, input_types, func_type),
            vectorized=_vectorized(target, func_type),
            deterministic=deterministic,
            version=version,
            result_types=_texts(result_types),
        )

    return declare if f is None else declare(f)


@overload
def udaf(
    f: None = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    accumulator_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Callable[[Any], UserAggregateFunction]: ...
@overload
def udaf(
    f: Any,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    accumulator_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> UserAggregateFunction: ...
def udaf(
    f: Any = None,
    input_types: TypeSpec | Sequence[TypeSpec] | None = None,
    result_type: TypeSpec | None = None,
    accumulator_type: TypeSpec | None = None,
    deterministic: bool = True,
    func_type: str = "general",
    version: str = "",
) -> Any:
    """Declares an aggregate function: ``@udaf(result_type=..., accumulator_type=...)`` over a class that
    derives from ``AggregateFunction``. State stores the accumulator as ``accumulator_type``.

    >>> @udaf(result_type="BIGINT", accumulator_type="ROW<n BIGINT>")
    ... class Count(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return [0]
    ...     def accumulate(self, accumulator, value):
    ...         accumulator[0] += 1
    ...     def get_value(self, accumulator):
    ...         return accumulator[0]
    """

    def declare(target: Any) -> UserAggregateFunction:
        body = target() if isinstance(target, type) else target
        if not isinstance(body, AggregateFunction):
            raise DeclarationError(f"udaf {_name(target)}: it must derive from AggregateFunction")
        if result_type is None or accumulator_type is None:
            missing = "result_type" if result_type is None else "accumulator_type"
            raise DeclarationError(f"udaf {_name(target)}: {missing} is missing")
        vectorized = _vectorized(target, func_type)
        if vectorized and not isinstance(body, Merging):
            raise DeclarationError(f"udaf {_name(target)}: func_type='arrow' needs the method merge")
        return UserAggregateFunction(
            name=_name(target),
            body=body,
            input_types=None if input_types is None else _texts(input_types),
            vectorized=vectorized,
            deterministic=deterministic,
            version=version,
            result_type=type_text(result_type),
            accumulator_type=type_text(accumulator_type),
        )

    return declare if f is None else declare(f)


def plain_function(function: Callable[..., Any]) -> UserScalarFunction | None:
    """An undecorated function as a scalar function, by its annotations. None if they have no result type."""
    if not inspect.isfunction(function) or result_text(function) is None:
        return None
    return udf(function)


def _body(target: Any) -> Any:
    instance = target() if isinstance(target, type) else target
    body = getattr(instance, "eval", instance)
    if not callable(body):
        raise DeclarationError(f"{_name(target)} is not callable")
    return body


def _name(target: Any) -> str:
    return str(getattr(target, "__qualname__", type(target).__qualname__))


def _texts(types: TypeSpec | Sequence[TypeSpec]) -> tuple[str, ...]:
    return tuple(map(type_text, [types] if isinstance(types, str | pa.DataType) else types))


def _inputs(body: Any, types: TypeSpec | Sequence[TypeSpec] | None, func_type: str) -> tuple[str, ...] | None:
    if types is not None:
        return _texts(types)
    return parameter_texts(body) if func_type == "general" else None


def _vectorized(target: Any, func_type: str) -> bool:
    if func_type not in FUNC_TYPES:
        raise DeclarationError(
            f"{_name(target)}: func_type '{func_type}' is not one of {', '.join(FUNC_TYPES)}"
        )
    return func_type == "arrow"
