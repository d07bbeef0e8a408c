"""What a batch query reads of its tables, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors import registry
from tidemill.connectors.api import (
    NamedTable,
    Source,
    SourceRequest,
)
from tidemill.connectors.metadata import metadata_columns
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.arrival import scans
from tidemill.physical.batch.pushed import AggregatePushdown, aggregate_pushdown
from tidemill.physical.batch.view.attributes import Attributes
from tidemill.plan.column_filters import column_filters
from tidemill.runtime.batch.limited_rows import Stretch
from tidemill.runtime.compile.context import CompileContext, MakeSource
from tidemill.runtime.compile.source import declared, source_request
from tidemill.runtime.job.request import JobRequest, parallelism
from tidemill.runtime.spark.batch_frames.frames import TableRows
from tidemill.runtime.tables import make_source


@dataclass(slots=True, kw_only=True)
class BatchScans:
    """Of one query. ``stretch``: the part that is read of one of its tables. ``named``: the sources of tables
    that were read by name, which are to be checked when they have been read."""

    context: CompileContext
    stretch: Stretch | None = None
    named: list[Source] = field(default_factory=list)

    @classmethod
    def of(cls, request: JobRequest, stretch: Stretch | None = None) -> BatchScans:
        source_of = partial(make_source, shared=request.shared, fence=request.fence)
        context = _context(request.frames, request.zone, parallelism(request), source_of)
        return cls(context=context, stretch=stretch)

    def rows(self, spark: SparkSession, node: b.TableSourceScan, sequenced: bool) -> TableRows:
        _check_insert_only(node.table, dict(node.options))
        wanted = _wanted(node, sequenced, self.context)
        return TableRows(
            self._read(spark, node, wanted), declared(wanted, tuple(f.name for f in node.fields))
        )

    def _read(
        self, spark: SparkSession, node: b.TableSourceScan, wanted: SourceRequest
    ) -> DataFrame | NamedTable:
        if self.stretch is not None and node is self.stretch.scan:
            return self.stretch.read(spark)
        source = self.context.make_source(wanted)
        self.named.append(source)
        return source.named_table(spark)

    def grouped(self, spark: SparkSession, node: b.Aggregate) -> tuple[b.Aggregate, DataFrame] | None:
        """What ``node`` is over parts that its table has made, and these."""
        asked = aggregate_pushdown(node)
        found = None if asked is None else self._grouped_source(asked)
        return None if asked is None or found is None else (asked.merging(node), found.read_all(spark))

    def _grouped_source(self, asked: AggregatePushdown) -> Source | None:
        node = asked.scan
        connector = registry.validate(node.table, dict(node.options), role="source")
        if metadata_columns(node.table):
            return None
        wanted = replace(_wanted(node, False, self.context), filters=asked.filters)
        return connector.grouped(wanted, asked.grouping)

    def portioned(self, node: b.TableSourceScan) -> Source | None:
        """The source of ``node`` if parts of it can be read."""
        _check_insert_only(node.table, dict(node.options))
        source = self.context.make_source(_wanted(node, False, self.context))
        return source if source.gives_portions else None

    def check_read(self) -> None:
        for source in self.named:
            source.check_read()


def how_read(root: p.PhysicalNode, zone: str) -> dict[int, Attributes]:
    """By the id of a scan what reads its table, for EXPLAIN, where there is more than one way.
    Cost: looks at files."""
    context = _context({}, zone, 1, make_source)
    found: dict[int, dict[str, None]] = {}
    for node, sequenced in scans(root):
        connector = registry.validate(node.table, dict(node.options), role="source")
        how = connector.how_read(_wanted(node, sequenced, context))
        found.setdefault(id(node), {})[how] = None
    shown = {key: "; ".join(filter(None, ways)) for key, ways in found.items()}
    return {key: (("runs", f"[{text}]"),) for key, text in shown.items() if text}


def _context(frames: Mapping[str, DataFrame], zone: str, width: int, source_of: MakeSource) -> CompileContext:
    return CompileContext(
        make_source=source_of,
        frames=frames,
        zone=zone,
        parallelism=width,
        per_record=False,
        streaming=False,
    )


def _wanted(node: b.TableSourceScan, sequenced: bool, context: CompileContext) -> SourceRequest:
    filters = column_filters(node.filters, node.columns)
    found = source_request(
        node.table, node.columns, dict(node.options), node.fields, context, sequenced, filters
    )
    return replace(found, limit=node.limit)


def _check_insert_only(table: CatalogTable, options: dict[str, str]) -> None:
    connector = registry.validate(table, options, role="source")
    if not connector.rows_in_batch and connector.source_kinds(table, options) != INSERT_ONLY:
        raise ValidationError(
            "Querying a table in batch mode is currently only possible for INSERT-only table sources. "
            f"But the source for table '{table.path}' produces other changelog messages than just INSERT."
        )
