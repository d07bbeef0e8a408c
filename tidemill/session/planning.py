"""From statement trees to plans: bind, choose physical nodes. Nothing runs here.

A plan goes by what the user set (``table.exec.mini-batch.enabled`` unset is off, as in Flink).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.config.mini_batch_options import MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_ENABLED, MINI_BATCH_SIZE
from tidemill.config.option import Configuration
from tidemill.connectors import registry as connectors
from tidemill.deep_calls import with_room
from tidemill.physical.batch.planner import plan_batch
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.explain.view.flink_view import flink_view
from tidemill.physical.nodes import PhysicalNode
from tidemill.physical.planner import plan_job
from tidemill.physical.traits.mini_batch import mini_batch_config
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.plan.rewrite import node_expressions, subplan
from tidemill.session.context import SessionContext


def physical(config: Configuration, logical: n.LogicalNode) -> PhysicalNode:
    """The streaming plan of an optimised logical plan."""
    return physical_job(config, [logical])[0]


def physical_job(config: Configuration, logical: Sequence[n.LogicalNode]) -> list[PhysicalNode]:
    """The plans of what runs as one job."""
    return plan_job(logical, _planner(config))


def flink_views(config: Configuration, logical: Sequence[n.LogicalNode]) -> list[PhysicalNode]:
    """What EXPLAIN shows of the same."""
    planner = _planner(config)
    return with_room(lambda: [flink_view(plan, planner) for plan in logical])


def _planner(config: Configuration) -> PlannerContext:
    return PlannerContext(
        config=config,
        source_kinds=source_kinds,
        sink_kinds=sink_kinds,
        mini_batch=mini_batch_config(config, explicit=True),
    )


def batch(context: SessionContext, logical: n.LogicalNode) -> PhysicalNode:
    """The batch plan of an optimised logical plan, to run or to show."""
    return with_room(lambda: plan_batch(logical, context.configuration, table_size))


def table_size(scan: n.Scan | n.FrameScan) -> int | None:
    """Bytes of a whole table as of now, where its connector can tell."""
    if isinstance(scan, n.FrameScan):
        return None
    return connectors.connector(dict(scan.options)).size(scan.table, dict(scan.options))


def source_kinds(table: CatalogTable, given: Mapping[str, str]) -> frozenset[RowKind]:
    return connectors.validate(table, given, role="source").source_kinds(table, given)


def check_sink(table: CatalogTable) -> None:
    """Raises what an INSERT into the table would be refused with for its connector and options."""
    connectors.validate(table, table.options, role="sink")


def sink_kinds(
    table: CatalogTable, given: Mapping[str, str], wanted: frozenset[RowKind]
) -> frozenset[RowKind]:
    return connectors.validate(table, given, role="sink").sink_kinds(table, given, wanted)


def bundled(config: Configuration, plans: Sequence[n.LogicalNode]) -> Configuration:
    """``config`` with the hints of the bound ``plans``: mini-batch is on, with the smallest latency and size
    of all hints, because an epoch is one mini-batch for all operators. Without hints ``config`` is
    unchanged."""
    hints = with_room(lambda: [b for plan in plans for b in _bundles(plan)])
    if not hints:
        return config
    config = config.with_value(MINI_BATCH_ENABLED.key, "true")
    latencies = [b.latency for b in hints if b.latency is not None]
    sizes = [b.size for b in hints if b.size is not None]
    if latencies:
        config = config.with_value(MINI_BATCH_ALLOW_LATENCY.key, f"{min(latencies)} ms")
    return config.with_value(MINI_BATCH_SIZE.key, str(min(sizes))) if sizes else config


@once_per_node
def _bundles(node: n.LogicalNode) -> frozenset[n.Bundle]:
    own_hints = {node.bundle} if isinstance(node, n.Project) and node.bundle is not None else set()
    return frozenset(own_hints).union(*map(_bundles, _below(node)))


def _below(node: n.LogicalNode) -> Iterator[n.LogicalNode]:
    yield from node.inputs
    for expr in node_expressions(node):
        yield from filter(None, (subplan(part) for part in expr.walk()))
