"""Local and global phases of aggregations, and the incremental phase between two global ones.

Only under mini-batch (without bundles there is nothing to fold before the exchange), unless
table.optimizer.agg-phase-strategy says ONE_PHASE, and only if every call's accumulators can be merged.
The phases are what EXPLAIN shows; ``core`` on the last one keeps the whole meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY, INCREMENTAL_AGG_ENABLED
from tidemill.config.option import Configuration
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.accumulators import Accumulators, accumulators
from tidemill.physical.explain.printer import Printer
from tidemill.physical.tree import map_up
from tidemill.plan.expressions import AggregateCall
from tidemill.types.logical import BIGINT, Field


def split_phases(root: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    """The plan with every aggregation in the phases Flink would give it under mini-batch."""
    if config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        return root
    incremental = config.read(INCREMENTAL_AGG_ENABLED)

    def rewrite(node: p.PhysicalNode) -> p.PhysicalNode:
        if not isinstance(node, p.GroupAggregate) or not mergeable(node.calls):
            return node
        whole = _two_phases(node)
        return _merge_incremental(whole) if incremental and node.phase == "FINAL" else whole

    return map_up(root, rewrite)


def mergeable(calls: Sequence[AggregateCall]) -> bool:
    """Whether Flink can put together what two phases accumulate."""
    found = [declared(c.function) for c in calls]
    return all(x is not None and x.phases.two_phase for x in found)


def _two_phases(node: p.GroupAggregate) -> p.GlobalGroupAggregate:
    below = node.input.inputs[0]
    found = _accumulators(node, below)
    local = _local(node, below, found)
    keys = tuple(range(len(node.keys)))
    names = [local.fields[k].name for k in keys]
    exchange = p.Exchange(fields=local.fields, traits=local.traits, input=local, keys=keys)
    merged = [f"{text} AS {c.name}" for text, c in zip(found.merged, node.calls, strict=True)]
    return p.GlobalGroupAggregate(
        fields=node.fields,
        traits=node.traits,
        input=exchange,
        keys=keys,
        calls=node.calls,
        phase=node.phase,
        select=(*names, *merged),
        core=node.core,
    )


def _accumulators(node: p.GroupAggregate, below: p.PhysicalNode) -> Accumulators:
    retract = below.traits.kinds != INSERT_ONLY
    return accumulators(node.calls, Printer.over(below.fields), retract=retract)


def _local(node: p.GroupAggregate, below: p.PhysicalNode, found: Accumulators) -> p.LocalGroupAggregate:
    keys = [below.fields[k] for k in node.keys]
    return p.LocalGroupAggregate(
        fields=(*keys, *(Field(name, BIGINT) for name in found.names)),
        traits=p.Traits(),
        input=below,
        keys=node.keys,
        calls=node.calls,
        phase=node.phase,
        select=(*(k.name for k in keys), *found.local),
    )


def _merge_incremental(last: p.GlobalGroupAggregate) -> p.GlobalGroupAggregate:
    """Global over local over global partial: the two inner ones become one incremental phase."""
    local = last.input.inputs[0]
    partial = local.inputs[0]
    if not isinstance(partial, p.GlobalGroupAggregate):
        return last
    exchange = partial.input
    source = exchange.inputs[0]
    assert isinstance(local, p.LocalGroupAggregate)
    assert isinstance(source, p.LocalGroupAggregate)
    found = _partial_accumulators(source)
    fields = (*(source.fields[k] for k in local.keys), *source.fields[len(source.keys) :])
    inner = p.IncrementalGroupAggregate(
        fields=fields,
        traits=p.Traits(),
        input=exchange,
        partial_keys=tuple(range(len(source.keys))),
        final_keys=local.keys,
        select=(*(source.fields[k].name for k in local.keys), *_incremental(found)),
    )
    keys = tuple(range(len(local.keys)))
    outer = p.Exchange(fields=fields, traits=p.Traits(), input=inner, keys=keys)
    select = (
        *(fields[k].name for k in keys),
        *_final(last, found, retract=source.input.traits.kinds != INSERT_ONLY),
    )
    return replace(last, input=outer, keys=keys, select=select)


def _partial_accumulators(source: p.LocalGroupAggregate) -> Accumulators:
    retract = source.input.traits.kinds != INSERT_ONLY
    return accumulators(source.calls, Printer.over(source.input.fields), retract=retract)


def _incremental(found: Accumulators) -> list[str]:
    texts = [f"{text} AS {name}" for text, name in zip(found.merged, found.names, strict=True)]
    counter = [x.rpartition(" AS ")[2] for x in found.local if x.startswith("COUNT_RETRACT(*) AS count1$")]
    return texts + [f"COUNT_RETRACT({name}) AS {name}" for name in counter if name not in found.names]


def _final(last: p.GlobalGroupAggregate, found: Accumulators, *, retract: bool) -> list[str]:
    suffix = "_RETRACT" if retract else ""
    pairs = zip(last.calls, found.names, strict=True)
    return [f"{c.function}{suffix}({name}) AS {c.name}" for c, name in pairs]
