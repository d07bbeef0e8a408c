"""Table scans, with ChangelogNormalize if a source's changelog is incomplete.

A source with upserts (no -U), or a source that may repeat events (table.exec.source.cdc-events-duplicate), is
normalized by its primary key.
"""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.config.sink_options import CDC_EVENTS_DUPLICATE
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.finish import exchange, finish, select, with_keys
from tidemill.plan import nodes as n
from tidemill.types.logical import Field


def plan_scan(node: n.Scan, context: PlannerContext, state_ttl: int) -> p.PhysicalNode:
    kinds = context.source_kinds(node.table, dict(node.options))
    if not _needs_normalizing(node.table, kinds, context):
        return _scan(node, node.columns, node.fields, kinds)
    columns, fields = _with_key(node)
    scan = _scan(node, columns, fields, kinds)
    keys = tuple(columns.index(c) for c in node.table.primary_key)
    normal = finish(
        p.ChangelogNormalize(fields=fields, input=exchange(scan, keys), keys=keys, state_ttl=state_ttl)
    )
    return select(normal, tuple(range(len(node.columns))), node.fields)


def _needs_normalizing(table: CatalogTable, kinds: frozenset[RowKind], context: PlannerContext) -> bool:
    upserts = RowKind.UPDATE_AFTER in kinds and RowKind.UPDATE_BEFORE not in kinds
    if upserts and not table.primary_key:
        raise ValidationError(
            f"Table '{table.path}' produces a changelog stream contains UPDATE_AFTER but no UPDATE_BEFORE, "
            "this requires defining primary key constraint on the table."
        )
    repeats = context.config.read(CDC_EVENTS_DUPLICATE) and kinds != INSERT_ONLY
    if repeats and not table.primary_key:
        raise ValidationError(
            f"Configuration '{CDC_EVENTS_DUPLICATE.key}' is enabled which requires the changelog sources to "
            f"define a PRIMARY KEY. However, table '{table.path}' doesn't have a primary key."
        )
    return upserts or repeats


def _with_key(node: n.Scan) -> tuple[tuple[str, ...], tuple[Field, ...]]:
    """The scan's columns, and the missing columns of the primary key."""
    types = {c.name: c.type for c in node.table.columns}
    missing = [c for c in node.table.primary_key if c not in node.columns]
    fields = (*node.fields, *(Field(c, types[c]) for c in missing))
    return (*node.columns, *missing), fields


def _scan(
    node: n.Scan, columns: tuple[str, ...], fields: tuple[Field, ...], kinds: frozenset[RowKind]
) -> p.TableSourceScan:
    return with_keys(
        p.TableSourceScan(
            fields=fields,
            traits=p.Traits(kinds=kinds),
            table=node.table,
            columns=columns,
            options=node.options,
            filters=node.filters,
            projected=columns != tuple(c.name for c in node.table.physical_columns),
        )
    )
