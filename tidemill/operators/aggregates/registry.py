"""All built-in aggregates by name, merged from the families' declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType

import pyarrow as pa

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates import (
    collections,
    count,
    first_last,
    json_text,
    min_max,
    percentile,
    single_value,
    sum,
    variance,
)
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Merging
from tidemill.operators.aggregates.user import user_aggregate

FAMILIES: tuple[ModuleType, ...] = (
    collections,
    count,
    first_last,
    json_text,
    min_max,
    percentile,
    single_value,
    sum,
    variance,
)


def declared(function: str) -> AggregateDeclaration | None:
    """What is true of the aggregate ``function``; None for a user's aggregate and for a window function."""
    return declarations().get(function)


@cache
def declarations() -> Mapping[str, AggregateDeclaration]:
    return {found.name: found for family in FAMILIES for found in family.DECLARATIONS}


def is_ordered(call: AggregateSpec) -> bool:
    """Whether the result of ``call`` may depend on the order of arrival."""
    found = declared(call.function)
    return call.user is not None or (found is not None and found.ordered)


def ignores_distinct(call: AggregateSpec) -> bool:
    """Whether DISTINCT does not change the result of ``call``."""
    found = declared(call.function)
    return found is not None and found.ignores_distinct


def counts_null(call: AggregateSpec) -> bool:
    """Whether NULL is one of the values of a DISTINCT ``call``."""
    found = declared(call.function)
    return call.user is not None or (found is not None and found.counts_null)


def merges(call: AggregateSpec, exact: Callable[[pa.DataType], bool]) -> bool:
    """Whether results of ``call`` over parts of the rows give its result over all rows.

    ``exact`` says of which types sums are exact.
    """
    found = declared(call.function)
    if found is None or found.merging is Merging.NEVER:
        return False
    return found.merging is Merging.ALWAYS or all(map(exact, call.arg_types))


def build(spec: AggregateSpec, source: Source) -> Aggregate:
    """The kernel of a call; NotSupportedError names a function without one."""
    if spec.user is not None:
        return user_aggregate(spec, spec.user, source)
    found = declared(spec.function)
    if found is None or found.build is None:
        raise NotSupportedError(
            f"Aggregate function {spec.function} is not supported in streaming mode",
            expected=tuple(sorted(x.name for x in declarations().values() if x.build is not None)),
        )
    return found.build(spec, source)
