"""The base classes of the nodes of physical plans, in streaming and in batch mode."""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """``kinds``: the RowKinds on the edge out of the node. Keys are sets of field indexes. All rows of a
    batch plan are inserts."""

    kinds: frozenset[RowKind] = INSERT_ONLY
    unique_keys: frozenset[frozenset[int]] = frozenset()
    upsert_keys: frozenset[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNode:
    """``traits``: in a streaming plan, as ``finish`` computes them. ``most``: in a batch plan, an upper bound
    of the bytes of the node's rows, None if unknown. It decides what is broadcast, so only certain facts
    lower it."""

    fields: tuple[Field, ...]
    traits: Traits = Traits()
    most: int | None = field(default=None, compare=False)

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(PhysicalNode):
    input: PhysicalNode

    @property
    def inputs(self) -> tuple[PhysicalNode, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned(Unary):
    """A node that can emit ``versions``: every change by itself, with the watermark before the row that
    caused it."""

    versions: bool = False
