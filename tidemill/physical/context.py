"""The planner's inputs besides the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.config.option import Configuration
from tidemill.physical.traits.mini_batch import MiniBatchConfig

SourceKinds = Callable[[CatalogTable, Mapping[str, str]], frozenset[RowKind]]
"""The kinds a table's connector produces: INSERT_ONLY, UPSERT or ALL_KINDS."""

SinkKinds = Callable[[CatalogTable, Mapping[str, str], frozenset[RowKind]], frozenset[RowKind]]
"""The kinds a table's connector takes of the ones the query may send."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannerContext:
    """``mini_batch`` None plans without bundles."""

    config: Configuration
    source_kinds: SourceKinds
    sink_kinds: SinkKinds
    mini_batch: MiniBatchConfig | None = None
