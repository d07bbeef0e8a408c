"""What a function is: how its types resolve (Flink's rules) and how it is said in Spark SQL.

The registry (``functions.registry``) answers ``scalar(name)``, ``aggregate(name)``, ``names()``.
Tables of functions live one file per family. Spark runs with ``spark.sql.ansi.enabled=false`` and
``spark.sql.caseSensitive=true``; the session time zone is ``table.local-time-zone``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tidemill.functions.arrays.api import Entry
from tidemill.types.logical import LogicalType


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as type inference sees it; ``literal`` is its value if ``is_literal``."""

    type: LogicalType
    literal: object = None
    is_literal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """``arg_types``: what each argument is implicitly cast to (equal type: no cast)."""

    arg_types: tuple[LogicalType, ...]
    result: LogicalType


class SignatureError(Exception):
    """No signature fits; the message is Flink's wording without the position.

    The binder turns it into a ValidationError with the position of the call.
    """


Resolver = Callable[[tuple[Argument, ...], Mapping[str, str]], Resolved]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCall:
    """What a translation gets: Spark SQL text per argument (already of ``arg_types``)."""

    args: tuple[str, ...]
    arg_types: tuple[LogicalType, ...]
    literals: tuple[object, ...]
    result: LogicalType
    options: Mapping[str, str]
    zone: str


Translation = Callable[[SparkCall], str]

GROUPED = "$grouped"
"""Option that the binder gives an aggregate's resolver: "TRUE" where every result row comes from at
least one input row (GROUP BY keys, no FILTER), so that NOT NULL arguments give a NOT NULL result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkAggregateCall(SparkCall):
    """``where``: FILTER's condition as Spark SQL text, '' for none. ``sequence``: a Spark SQL text that
    orders rows by arrival, '' if the input has none (then order-dependent results are any order's).
    ``quick``: what fails runs again without it (``decimal_sums``). ``over``: what stands behind OVER, None
    for a group; Spark has neither DISTINCT nor FILTER beside it."""

    distinct: bool = False
    where: str = ""
    sequence: str = ""
    quick: bool = False
    over: str | None = None

    @property
    def of_all_rows(self) -> SparkAggregateCall:
        """The same without DISTINCT."""
        return replace(self, distinct=False)


AggregateTranslation = Callable[[SparkAggregateCall], str]


def spark_aggregate(function: str, call: SparkAggregateCall, *args: str, condition: str = "") -> str:
    """``function([DISTINCT] args) [FILTER ...] [OVER ...]``; ``condition`` is ANDed to the call's own."""
    distinct = "DISTINCT " if call.distinct else ""
    where = " AND ".join(f"({c})" for c in (call.where, condition) if c)
    chosen = (f" FILTER (WHERE {where})" if where else "") + (
        "" if call.over is None else f" OVER ({call.over})"
    )
    return f"{function}({distinct}{', '.join(args)}){chosen}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    """``deterministic`` False stops folding; ``draws``: it is another value for each row, where the clock is
    one for all. ``arrays``: the translation to Arrow, None if there is only the JVM."""

    name: str
    resolve: Resolver
    spark: Translation
    deterministic: bool = True
    draws: bool = False
    arrays: Entry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    """An aggregate: types here, batch translation here, the streaming kernel in ``operators``.

    ``spark`` gives the whole Spark SQL aggregate, DISTINCT and FILTER included. If it is None, batch mode
    refuses the function.
    """

    name: str
    resolve: Resolver
    spark: AggregateTranslation | None
    aliases: tuple[str, ...] = field(default=())
