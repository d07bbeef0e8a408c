"""All built-in aggregates by name, from the declarations beside their kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa

from tidemill.errors import NotSupportedError
from tidemill.operators import aggregates
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Merging
from tidemill.operators.aggregates.user import user_aggregate


def declared(function: str) -> AggregateDeclaration | None:
    """The declaration of the aggregate ``function``; None for a user's aggregate and for a window
    function."""
    return declarations().get(function)


@cache
def declarations() -> Mapping[str, AggregateDeclaration]:
    """By name, from the ``DECLARATIONS`` of each file of this package."""
    names = (f"{aggregates.__name__}.{module.name}" for module in iter_modules(aggregates.__path__))
    families = (getattr(import_module(name), "DECLARATIONS", ()) for name in names)
    return {declaration.name: declaration for family in families for declaration in family}


def is_ordered(call: AggregateSpec) -> bool:
    """Whether the result of ``call`` may depend on the order of arrival."""
    declaration = declared(call.function)
    return call.user is not None or (declaration is not None and declaration.ordered)


def ignores_distinct(call: AggregateSpec) -> bool:
    """Whether DISTINCT does not change the result of ``call``."""
    declaration = declared(call.function)
    return declaration is not None and declaration.ignores_distinct


def counts_null(call: AggregateSpec) -> bool:
    """Whether NULL is one of the values of a DISTINCT ``call``."""
    declaration = declared(call.function)
    return call.user is not None or (declaration is not None and declaration.counts_null)


def widens(function: str) -> bool:
    """Whether state of the aggregate ``function`` over a type is its state over a wider type."""
    declaration = declared(function)
    return declaration is not None and declaration.widens


def merges(call: AggregateSpec, exact: Callable[[pa.DataType], bool]) -> bool:
    """Whether results of ``call`` over parts of the rows give its result over all rows.

    ``exact`` says of which types sums are exact.
    """
    declaration = declared(call.function)
    if declaration is None or declaration.merging is Merging.NEVER:
        return False
    return declaration.merging is Merging.ALWAYS or all(map(exact, call.arg_types))


def build(spec: AggregateSpec, source: Source) -> Aggregate:
    """The kernel of a call; NotSupportedError names a function without one."""
    if spec.user is not None:
        return user_aggregate(spec, spec.user, source)
    declaration = declared(spec.function)
    if declaration is None or declaration.build is None:
        raise NotSupportedError(
            f"Aggregate function {spec.function} is not supported in streaming mode",
            expected=tuple(sorted(x.name for x in declarations().values() if x.build is not None)),
        )
    return declaration.build(spec, source)
