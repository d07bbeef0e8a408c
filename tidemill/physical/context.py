"""What the planner must know beside the query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.config.option import Configuration
from tidemill.physical.mini_batch import MiniBatchConfig

SourceKinds = Callable[[CatalogTable, Mapping[str, str]], frozenset[RowKind]]
"""The kinds a table's connector produces: INSERT_ONLY, UPSERT or ALL_KINDS."""

SinkKinds = Callable[[CatalogTable, Mapping[str, str], frozenset[RowKind]], frozenset[RowKind]]
"""The kinds a table's connector takes of the ones the query may send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerContext:
    """``mini_batch`` None plans without bundles. ``keep_update_before``: the root of a SELECT gives -U
    too (as executed), else it does without where it can (as Flink's EXPLAIN prints it). ``explained``:
    the plan is only shown, so it may show what execution does in another way: filters inside
    ChangelogNormalize, keep-first by event time that waits for watermarks, joins and Top-N that
    overwrite by key. Kernels add up weights, so in plans that run they get -U with every +U."""

    config: Configuration
    source_kinds: SourceKinds
    sink_kinds: SinkKinds
    mini_batch: MiniBatchConfig | None = None
    keep_update_before: bool = False
    explained: bool = False
