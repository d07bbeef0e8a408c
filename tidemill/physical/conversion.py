"""The question how a logical node becomes physical nodes.

``operators`` has the answers for logical nodes that one operator runs, ``planner`` all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.config.option import Configuration
from tidemill.config.sink_options import STATE_TTL
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.traits.mini_batch import MiniBatchConfig
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node

SourceKinds = Callable[[CatalogTable, Mapping[str, str]], frozenset[RowKind]]
"""The kinds a table's connector produces: INSERT_ONLY, UPSERT or ALL_KINDS."""

SinkKinds = Callable[[CatalogTable, Mapping[str, str], frozenset[RowKind]], frozenset[RowKind]]
"""The kinds a table's connector takes of the ones the query may send."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannerContext:
    """The planner's inputs besides the query. ``mini_batch`` None plans without bundles."""

    config: Configuration
    source_kinds: SourceKinds
    sink_kinds: SinkKinds
    mini_batch: MiniBatchConfig | None = None


@once_per_node
def convert(node: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """The physical nodes of ``node`` and all below it; a shared sub-plan is converted once."""
    return convert_node(node, context)


@singledispatch
def convert_node(node: n.LogicalNode, context: PlannerContext) -> p.PhysicalNode:
    """As ``convert``, asked once per node."""
    raise NotSupportedError(f"{type(node).__name__} is not supported in a streaming plan.")


def state_ttl(context: PlannerContext, hints: Mapping[str, str] | None = None) -> int:
    """Milliseconds: a STATE_TTL hint's value, else table.exec.state.ttl."""
    for text in (hints or {}).values():
        return STATE_TTL.parse(text).milliseconds
    return context.config.read(STATE_TTL).milliseconds
