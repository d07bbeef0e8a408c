"""All functions by canonical upper-case name, merged from the families' tables.

A name is defined once: two families that both define it are a programming error, found at first use.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import TypeVar

from tidemill.functions import (
    addresses,
    aggregates,
    aggregates_collections,
    arithmetic,
    collections_access,
    collections_arrays,
    comparison,
    conditional,
    constructors,
    datetime_extract,
    datetime_now,
    datetime_rounding,
    datetime_shift,
    datetime_text,
    encoding,
    formatting,
    hashing,
    json_construct,
    json_query,
    logic,
    numeric,
    patterns,
    regexp,
    session,
    strings,
    strings_search,
    unsupported,
)
from tidemill.functions.api import AggregateFunction, ScalarFunction

T = TypeVar("T")

SCALAR_FAMILIES: tuple[ModuleType, ...] = (
    addresses,
    arithmetic,
    collections_access,
    collections_arrays,
    comparison,
    conditional,
    constructors,
    datetime_extract,
    datetime_now,
    datetime_rounding,
    datetime_shift,
    datetime_text,
    encoding,
    formatting,
    hashing,
    json_construct,
    json_query,
    logic,
    numeric,
    patterns,
    regexp,
    session,
    strings,
    strings_search,
    unsupported,
)
AGGREGATE_FAMILIES: tuple[ModuleType, ...] = (aggregates, aggregates_collections)


def scalar(name: str) -> ScalarFunction | None:
    """The scalar function or operator ``name``, None if there is none."""
    return _scalars().get(name.upper())


def aggregate(name: str) -> AggregateFunction | None:
    """The aggregate function ``name``, None if there is none."""
    return _aggregates().get(name.upper())


def names() -> tuple[str, ...]:
    """All names, sorted; operators included, but not what only plans call (``$...``)."""
    return tuple(sorted(n for n in {*_scalars(), *_aggregates()} if not n.startswith("$")))


@cache
def _scalars() -> dict[str, ScalarFunction]:
    return _index((f.name, f) for family in SCALAR_FAMILIES for f in family.FUNCTIONS)


@cache
def _aggregates() -> dict[str, AggregateFunction]:
    return _index(
        (name, f) for family in AGGREGATE_FAMILIES for f in family.AGGREGATES for name in (f.name, *f.aliases)
    )


def _index(entries: Iterable[tuple[str, T]]) -> dict[str, T]:
    table: dict[str, T] = {}
    for name, entry in entries:
        if name in table:
            raise ValueError(f"function {name} is defined twice")
        table[name] = entry
    return table
