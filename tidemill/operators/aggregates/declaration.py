"""Properties of aggregate functions. The planner and the kernels use them instead of lists of names.

A built-in aggregate is declared in two files: its types and its Spark text in ``functions``, the rest in the
``DECLARATIONS`` beside its kernel. No property has a default, so that a new aggregate cannot leave one out.
For MAX::

    AggregateDeclaration(
        name="MAX",
        build=maximum,
        ordered=False,
        merging=Merging.ALWAYS,
        ...
    )

A user's aggregate has no declaration: ``declared`` gives None, and nothing may be assumed of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source

Builder = Callable[[AggregateSpec, Source], Aggregate]


class Merging(Enum):
    """Whether results over parts of the rows give the result over all rows, to the last digit."""

    ALWAYS = "always"
    IF_EXACT = "if sums of the argument's type are exact"
    NEVER = "never"


class Direction(Enum):
    """The direction in which a result moves while rows are only added."""

    UP = "up"
    DOWN = "down"
    UP_IF_POSITIVE = "up, if no argument is negative"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlinkPhases:
    """How Flink plans the function in several phases, as EXPLAIN shows it. If Flink lacks the function,
    all flags are False, and ``buffers`` has the function's name in lower case.

    - ``two_phase``: a local and a global phase.
    - ``split``: a partial aggregation by buckets of a DISTINCT column.
    - ``bucketed``: the function's own column gets buckets, too.
    - ``fixed_width``: the buffers of batch mode have a fixed width.
    - ``buffers``: the names of the buffers; ``retract_buffers``: the names if rows are taken back.
    """

    two_phase: bool
    split: bool
    bucketed: bool
    fixed_width: bool
    buffers: tuple[str, ...]
    retract_buffers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateDeclaration:
    """One function. ``name`` is Flink's upper-case name.

    - ``build``: makes the streaming kernel of a call; None: the function is for batch mode only.
    - ``ordered``: the result depends on the order of arrival, so the input carries ``$seq``.
    - ``merging``: see ``Merging``.
    - ``parts``: the functions from whose results the result is derived; () if it is computed directly.
    - ``merged_by``: the function that merges results over parts; its own name if ``merging`` is NEVER.
    - ``over_no_rows``: the value over no rows; None is NULL.
    - ``ignores_distinct``: DISTINCT does not change the result.
    - ``counts_null``: NULL is a value of DISTINCT.
    - ``gives_row_value``: the result is the argument of one of the rows.
    - ``gives_only_argument``: over a single row the result is the argument.
    - ``direction``: see ``Direction``.
    - ``widens``: state over numbers of a narrower type is state over the same numbers of a wider type; not if
      the state has the numbers as texts.
    """

    name: str
    build: Builder | None
    ordered: bool
    merging: Merging
    parts: tuple[str, ...]
    merged_by: str
    over_no_rows: object
    ignores_distinct: bool
    counts_null: bool
    gives_row_value: bool
    gives_only_argument: bool
    direction: Direction
    widens: bool
    phases: FlinkPhases
