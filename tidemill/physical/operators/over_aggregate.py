"""OverAggregate: OVER windows of one partition and order."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.conversion import PlannerContext, convert, convert_node, state_ttl
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.emit import corrects_late_rows
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, bracket
from tidemill.physical.explain.costs import Cost, own_cost
from tidemill.physical.explain.notes import CORRECTED, Notes, notes_beside, passed, runs_otherwise
from tidemill.physical.explain.printer import Form, Printer, order_text
from tidemill.physical.finish import exchange, finish, references
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, computed, text_of, unordered_columns
from tidemill.physical.ranks import time_attribute
from tidemill.physical.running import running
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    Kinds,
    insert_only,
    modifications,
    needs_both,
    satisfied,
)
from tidemill.physical.traits.event_time import has_watermark
from tidemill.physical.traits.keys import derived_keys, keys_of_input
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.plan import nodes as n
from tidemill.plan.expressions import OverCall
from tidemill.types.logical import Field

_LOOKING_AHEAD = frozenset({"LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK"})


@convert_node.register
def _(node: n.Over, context: PlannerContext) -> p.PhysicalNode:
    """A stack with one OverAggregate per distinct window, then a projection into the order of the calls."""
    child = convert(node.input, context)
    windows: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(node.calls):
        key = (call.partition, call.order, call.rows, call.lower, call.upper)
        windows.setdefault(key, []).append(i)
    width = len(node.input.fields)
    for members in windows.values():
        calls = tuple(node.calls[i] for i in members)
        child = _over(calls, child, tuple(node.fields[width + i] for i in members), context)
    call_order = [i for members in windows.values() for i in members]
    if call_order == sorted(call_order):
        return child
    refs = references(child.fields)
    order = (*range(width), *(width + call_order.index(i) for i in range(len(call_order))))
    projections = tuple(refs[i] for i in order)
    return finish(p.Calc(fields=node.fields, input=child, projections=projections))


def _over(
    calls: tuple[OverCall, ...], child: p.PhysicalNode, fields: tuple[Field, ...], context: PlannerContext
) -> p.PhysicalNode:
    """If late rows change emitted results, event time tells nothing of a result."""
    first = calls[0]
    by_time = insert_only(child) and first.order and first.order[0].ascending and _looks_back(first)
    time = time_attribute(first.order, child) if by_time else ""
    if time == "ROWTIME" and corrects_late_rows(context.config):
        time = ""
    return finish(
        p.OverAggregate(
            fields=(*child.fields, *fields),
            input=exchange(child, first.partition),
            calls=tuple(replace(c, name=f.name) for c, f in zip(calls, fields, strict=True)),
            time=time,
            state_ttl=state_ttl(context),
        )
    )


def _looks_back(call: OverCall) -> bool:
    """Whether a row's result depends only on rows before it in the order, and on its peers."""
    if call.function in _LOOKING_AHEAD or call.order[0].index in call.partition:
        return False
    # A frame that begins with the partition is read once, up to the row.
    return call.upper.offset == 0 or ((call.upper.offset or 1) < 0 and call.lower.offset is not None)


def share_operator(node: p.OverAggregate, below: p.OverAggregate) -> bool:
    """Whether two stacked windows can be one operator with one state: ``node`` has the partition of
    ``below``, reads none of its results, and emits the same kinds of changes at the same times."""
    width = len(below.input.fields)
    used = {i for c in node.calls for i in (*c.partition, *c.args, *(k.index for k in c.order))}
    same = below.calls[0].partition == node.calls[0].partition and all(i < width for i in used)
    timed = node.time != "ROWTIME" or below.calls[0].order == node.calls[0].order
    return same and timed and below.time == node.time and insert_only(below) == insert_only(node)


@modifications.register
def _(node: p.OverAggregate) -> Kinds:
    return INSERT_ONLY if insert_only(node.input) and node.time else CHANGES


satisfied.register(p.OverAggregate, needs_both)
derived_keys.register(p.OverAggregate, keys_of_input)


@needs_watermark.register
def _(node: p.OverAggregate) -> bool:
    return node.time == "ROWTIME"


@running.register
def _(node: p.OverAggregate) -> p.PhysicalNode:
    stays = insert_only(node.input) and (node.time != "ROWTIME" or has_watermark(node.input))
    return node if stays else replace(node, time="")


incidental(p.OverAggregate, "time")


@lineage_of.register
def _(node: p.OverAggregate, lineages: Lineages) -> Lineage:
    """OVER outputs every input row with results. An operator that keeps all rows of a partition can compute
    any new call. By time it only keeps running results, so its calls are part of its state."""
    below = lineages.of(node.input)
    calls = [text_of(call, below.columns) for call in node.calls]
    partition = unordered_columns(node.calls[0].partition, below)
    settings = [canonical(x) for x in (node.time, node.state_ttl)]
    under = node.input.input if isinstance(node.input, p.Exchange) else node.input
    is_over = isinstance(under, p.OverAggregate)
    if node.time:
        rows = kept_rows = hashed(joined("OverTime", [below.rows, *settings, *partition, *sorted(calls)]))
    elif isinstance(under, p.OverAggregate) and share_operator(node, under):
        rows, kept_rows = below.rows, below.kept
    else:
        rows = below.rows
        kept_rows = hashed(joined("Over", [rows, *settings, *partition, *[below.kept] * is_over]))
    texts = [f"{call.function} OVER" for call in node.calls]
    own = [joined(call, partition) for call in calls]
    lineage = computed(below, range(len(below.columns)), rows, own, texts)
    return replace(lineage, kept=kept_rows)


@attributes.register
def _(node: p.OverAggregate, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields)
    first = node.calls[0]
    order = [order_text(k, printer) for k in first.order]
    selected = [f.name for f in node.input.fields] + [_call_text(c, printer) for c in node.calls]
    partition = [("partitionBy", f"[{printer.columns(first.partition)}]")] if first.partition else []
    ordering = [("orderBy", bracket(order))] if order else []
    return [*partition, *ordering, ("window", f"[ {_frame(first)}]"), ("select", bracket(selected))]


def _call_text(call: OverCall, printer: Printer) -> str:
    distinct = "DISTINCT " if call.distinct else ""
    return f"{call.function}({distinct}{printer.columns(call.args) or '*'}) AS {call.name}"


def _frame(call: OverCall) -> str:
    bounds = []
    for bound in (call.lower, call.upper):
        side = "PRECEDING" if bound.preceding else "FOLLOWING"
        if bound.offset == 0:
            bounds.append("CURRENT ROW")
        else:
            bounds.append(f"{'UNBOUNDED' if bound.offset is None else abs(bound.offset)} {side}")
    return f"{'ROWS' if call.rows else 'RANGE'} BETWEEN {bounds[0]} AND {bounds[1]}"


@own_cost.register
def _(node: p.OverAggregate, rows: tuple[float, ...]) -> Cost:
    return Cost(rows[0], rows[0], rows[0] * (1 + len(node.calls) / 8))


@runs_otherwise.register
def _(shown: p.OverAggregate, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.OverAggregate)
    return [CORRECTED] if shown.time and not runs.time else []


@notes_beside.register
def _(shown: p.OverAggregate, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    assert isinstance(runs, p.OverAggregate)
    (_, below), (_, lower) = passed(shown.input), passed(runs.input)
    if isinstance(lower, p.OverAggregate) and share_operator(runs, lower):
        yield below, "with the one above"
