"""Nodes that only EXPLAIN shows: what Flink has between operators, and Spark makes by itself."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical.batch import nodes as b
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What chooses between Flink's names of one thing.

    ``sized``: rows come from files or constants, of which Flink's planner takes a small number for granted;
    ``reduced``: fewer than were read. ``partitioned``: the columns they are distributed by.
    """

    sized: bool = False
    reduced: bool = False
    partitioned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A node of the view, with its traits."""

    node: b.BatchNode
    traits: Traits

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.node.fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(b.Unary):
    """An exchange, a local phase, a sort that an aggregation needs: Spark makes it when it plans the operator
    above. ``title``: Flink's name; ``by``: how Spark does it; ``attributes`` as they are shown."""

    title: str
    attributes: tuple[tuple[str, str], ...]
    by: str

    @property
    def name(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(b.Unary):
    """``whole``, over what Flink shows below it. ``groups`` and ``select`` are texts over the fields of the
    input; ``merges``: that is a local phase's."""

    whole: b.Aggregate
    hashed: bool
    merges: bool
    groups: tuple[str, ...]
    select: tuple[str, ...]

    @property
    def name(self) -> str:
        return "HashAggregate" if self.hashed else "SortAggregate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(b.Join):
    """``title`` is Flink's name; ``build`` its build side."""

    title: str

    @property
    def name(self) -> str:
        return self.title
