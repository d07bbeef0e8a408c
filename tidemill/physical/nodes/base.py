"""The base classes of physical nodes, with their fields and traits."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """``kinds``: the RowKinds on the edge out of the node. Keys are sets of field indexes."""

    kinds: frozenset[RowKind] = INSERT_ONLY
    unique_keys: frozenset[frozenset[int]] = frozenset()
    upsert_keys: frozenset[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalNode:
    fields: tuple[Field, ...]
    traits: Traits

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
