"""Nodes only for EXPLAIN: Flink's plan has them between operators, and Spark adds them by itself."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The properties of rows that decide which of its operators Flink plans.

    ``sized``: rows come from files or constants, for which Flink's planner assumes a small number.
    ``reduced``: there are fewer rows than were read. ``partitioned``: the columns that distribute the rows.
    """

    sized: bool = False
    reduced: bool = False
    partitioned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node of the view, with its traits."""

    node: p.PhysicalNode
    traits: Traits

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.node.fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(p.Unary):
    """An exchange, a local phase, or the sort of an aggregation, which Spark adds when it plans the operator
    above. ``title``: Flink's name. ``by``: how Spark does it. ``attributes``: as EXPLAIN prints them."""

    title: str
    attributes: tuple[tuple[str, str], ...]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(p.Unary):
    """The aggregation ``whole`` over Flink's nodes. ``groups`` and ``select``: texts over the fields of the
    input. ``merges``: the input is a local phase."""

    whole: b.Aggregate
    hashed: bool
    merges: bool
    groups: tuple[str, ...]
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(b.Join):
    """A join with Flink's name ``title`` and build side ``build``."""

    title: str
