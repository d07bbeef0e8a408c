"""Local and global phases of aggregations, and the incremental phase between two global phases.

Flink only has phases under mini-batch, because without bundles there is nothing to combine before the
exchange. It has none if table.optimizer.agg-phase-strategy is ONE_PHASE, or if a call's accumulators cannot
be merged.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import mergeable
from tidemill.physical.explain.printer import Printer
from tidemill.physical.explain.view.accumulators import Accumulators, accumulators
from tidemill.physical.explain.view.nodes import (
    IncrementalGroupAggregate,
    LocalGroupAggregate,
    PhasedGroupAggregate,
    is_global,
    phased_group,
)
from tidemill.physical.tree import with_inputs
from tidemill.plan.expressions import AggregateCall
from tidemill.types.logical import BIGINT, Field


def two_phases(node: p.GroupAggregate, *, incremental: bool) -> p.GroupAggregate:
    """``node``, or each half of it, in two phases if Flink can merge the accumulators."""
    final = isinstance(node, PhasedGroupAggregate) and node.phase == "FINAL"
    if final and isinstance(node.source, PhasedGroupAggregate):
        partial = two_phases(node.source, incremental=False)
        node = replace(node, input=with_inputs(node.input, (partial,)))
    if not mergeable(node.calls):
        return node
    whole = _two_phases(node)
    return _merge_incremental(whole) if incremental and final else whole


def _two_phases(node: p.GroupAggregate) -> PhasedGroupAggregate:
    local, buffers = _local(node)
    keys = tuple(range(len(node.keys)))
    names = [local.fields[k].name for k in keys]
    merged = [f"{text} AS {c.name}" for text, c in zip(buffers.merged, node.calls, strict=True)]
    return replace(
        node if isinstance(node, PhasedGroupAggregate) else phased_group(node, node),
        input=p.Exchange(fields=local.fields, traits=local.traits, input=local, keys=keys),
        keys=keys,
        select=(*names, *merged),
    )


def _local(node: p.GroupAggregate) -> tuple[LocalGroupAggregate, Accumulators]:
    below = node.source
    buffers = _accumulators(below, node.calls)
    keys = [below.fields[k] for k in node.keys]
    local = LocalGroupAggregate(
        fields=(*keys, *(Field(name, BIGINT) for name in buffers.names)),
        input=below,
        keys=node.keys,
        calls=node.calls,
        phase=node.phase if isinstance(node, PhasedGroupAggregate) else "",
        select=(*(k.name for k in keys), *buffers.local),
    )
    return local, buffers


def _accumulators(below: p.PhysicalNode, calls: tuple[AggregateCall, ...]) -> Accumulators:
    retract = below.traits.kinds != INSERT_ONLY
    return accumulators(calls, Printer.over(below.fields), retract=retract)


def _merge_incremental(last: PhasedGroupAggregate) -> PhasedGroupAggregate:
    """Merges the two inner phases of global over local over global partial into one incremental phase."""
    local = last.source
    assert isinstance(local, LocalGroupAggregate)
    partial = local.input
    if not isinstance(partial, PhasedGroupAggregate) or not is_global(partial):
        return last
    source = partial.source
    assert isinstance(source, LocalGroupAggregate)
    buffers = _accumulators(source.input, source.calls)
    fields = (*(source.fields[k] for k in local.keys), *source.fields[len(source.keys) :])
    inner = IncrementalGroupAggregate(
        fields=fields,
        input=partial.input,
        partial_keys=tuple(range(len(source.keys))),
        final_keys=local.keys,
        select=(*(source.fields[k].name for k in local.keys), *_incremental(buffers)),
    )
    keys = tuple(range(len(local.keys)))
    outer = p.Exchange(fields=fields, input=inner, keys=keys)
    select = (
        *(fields[k].name for k in keys),
        *_final(last, buffers, retract=source.input.traits.kinds != INSERT_ONLY),
    )
    return replace(last, input=outer, keys=keys, select=select)


def _incremental(buffers: Accumulators) -> list[str]:
    texts = [f"{text} AS {name}" for text, name in zip(buffers.merged, buffers.names, strict=True)]
    counter = [x.rpartition(" AS ")[2] for x in buffers.local if x.startswith("COUNT_RETRACT(*) AS count1$")]
    return texts + [f"COUNT_RETRACT({name}) AS {name}" for name in counter if name not in buffers.names]


def _final(last: PhasedGroupAggregate, buffers: Accumulators, *, retract: bool) -> list[str]:
    suffix = "_RETRACT" if retract else ""
    pairs = zip(last.calls, buffers.names, strict=True)
    return [f"{c.function}{suffix}({name}) AS {c.name}" for c, name in pairs]
