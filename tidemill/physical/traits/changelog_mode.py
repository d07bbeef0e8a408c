"""The RowKinds on every edge: kinds are derived bottom-up, the need of -U top-down.

Two passes, as in Flink's planner. ``modifications`` (bottom-up, while the tree is built) says whether
a node inserts, updates, deletes; an update is written UPDATE_AFTER there. ``assign`` (top-down) gives
every node the update form its consumer wants and writes the final kinds into the traits: -U is produced
only where some consumer above needs it. Invariant: no node produces a kind that its consumer refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from functools import singledispatch

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.tree import with_inputs, with_kinds
from tidemill.plan.expressions import InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.plan.once import once_per_node

Kinds = frozenset[RowKind]
INSERT_DELETE: Kinds = frozenset({RowKind.INSERT, RowKind.DELETE})
INSERT_UPDATE: Kinds = frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER})
CHANGES: Kinds = frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE})
BEFORE: Kinds = frozenset({RowKind.UPDATE_BEFORE})
_SHORT = {
    RowKind.INSERT: "I",
    RowKind.UPDATE_BEFORE: "UB",
    RowKind.UPDATE_AFTER: "UA",
    RowKind.DELETE: "D",
}


class Updates(Enum):
    """The form of updates that a consumer needs: -U/+U pairs or only +U."""

    BOTH = "both"
    AFTER = "after"


def changelog_text(kinds: Kinds) -> str:
    """A changelog mode as text: ``I,UB,UA,D``."""
    return ",".join(_SHORT[k] for k in sorted(kinds)) or "NONE"


def insert_only(node: p.PhysicalNode) -> bool:
    return node.traits.kinds == INSERT_ONLY


def updates(node: p.PhysicalNode) -> bool:
    return RowKind.UPDATE_AFTER in node.traits.kinds


@singledispatch
def modifications(node: p.PhysicalNode) -> Kinds:
    """The kinds that ``node`` emits, without -U, from its inputs' traits. Most nodes pass on their input's
    kinds."""
    return _joined(i.traits.kinds for i in node.inputs) - BEFORE


def _joined(kinds: Iterable[Kinds]) -> Kinds:
    return frozenset().union(*kinds)


@modifications.register(p.Match)
@modifications.register(p.ToChangelog)
@modifications.register(p.WindowsOfRows)
@modifications.register(p.Values)
@modifications.register(p.DataFrameScan)
def _(node: p.PhysicalNode) -> Kinds:
    return INSERT_ONLY


@modifications.register
def _(node: p.TableSourceScan) -> Kinds:
    return node.traits.kinds - BEFORE


@modifications.register(p.GroupAggregate)
def _(node: p.GroupAggregate) -> Kinds:
    return INSERT_UPDATE if insert_only(node.input) and not node.split else CHANGES


@modifications.register
def _(node: p.WindowAggregate) -> Kinds:
    """Data-driven windows that grow or merge change the windows already emitted."""
    if node.emit is None:
        return INSERT_ONLY
    grows = node.window.kind.is_data_driven
    return INSERT_UPDATE if insert_only(node.input) and not grows else CHANGES


@modifications.register(p.WindowRank)
@modifications.register(p.WindowJoin)
def _(node: p.WindowRank | p.WindowJoin) -> Kinds:
    """With early or late results rows are deleted and inserted."""
    return INSERT_ONLY if node.emit is None else INSERT_DELETE


@modifications.register(p.FromChangelog)
@modifications.register(p.ChangelogNormalize)
def _(node: p.PhysicalNode) -> Kinds:
    return CHANGES


@modifications.register
def _(node: p.Rank) -> Kinds:
    return INSERT_ONLY if node.insert_only else CHANGES


@modifications.register
def _(node: p.SortLimit) -> Kinds:
    return INSERT_ONLY if insert_only(node.input) and not node.order else CHANGES


@modifications.register
def _(node: p.OverAggregate) -> Kinds:
    return INSERT_ONLY if insert_only(node.input) and node.time else CHANGES


@modifications.register
def _(node: p.Join) -> Kinds:
    if node.kind in (JoinKind.INNER, JoinKind.SEMI):
        return _joined(i.traits.kinds for i in node.inputs) - BEFORE
    return CHANGES


@modifications.register
def _(node: p.IntervalJoin) -> Kinds:
    return INSERT_ONLY


@modifications.register
def _(node: p.TemporalJoin) -> Kinds:
    return node.left.traits.kinds - BEFORE


@modifications.register
def _(node: p.Sink) -> Kinds:
    return frozenset()


def assign(root: p.PhysicalNode, choices: tuple[Updates, ...]) -> p.PhysicalNode:
    """The tree with final kinds. ``choices``: the update forms that the root accepts, best first."""
    for choice in choices:
        plan = satisfy(root, choice)
        if plan is not None:
            return plan
    raise InternalError(f"no changelog mode fits {type(root).__name__}")


@once_per_node
def satisfy(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    """``node`` with updates in ``update_form``; None if it cannot emit them so."""
    return _satisfy(node, update_form)


@singledispatch
def _satisfy(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    """As ``satisfy``.

    By default the inputs need the same form, as for stateless nodes.
    """
    return _over(node, update_form, tuple(_wish(i, update_form) for i in node.inputs))


def _wish(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    return satisfy(node, update_form)


def _over(
    node: p.PhysicalNode, provided: Updates, inputs: tuple[p.PhysicalNode | None, ...]
) -> p.PhysicalNode | None:
    """``node`` over the satisfied ``inputs``, producing ``provided``; None if any input failed."""
    fitting = tuple(i for i in inputs if i is not None)
    if len(fitting) < len(inputs):
        return None
    return produce(with_inputs(node, fitting), provided)


def produce(node: p.PhysicalNode, provided: Updates) -> p.PhysicalNode:
    kinds = modifications(node)
    both = provided is Updates.BOTH and RowKind.UPDATE_AFTER in kinds
    return with_kinds(node, kinds | BEFORE if both else kinds)


@_satisfy.register(p.GroupAggregate)
@_satisfy.register(p.WindowAggregate)
@_satisfy.register(p.WindowsOfRows)
@_satisfy.register(p.WindowRank)
@_satisfy.register(p.OverAggregate)
@_satisfy.register(p.Match)
@_satisfy.register(p.Sort)
@_satisfy.register(p.ToChangelog)
def _(node: p.Unary, update_form: Updates) -> p.PhysicalNode | None:
    return _over(node, update_form, (satisfy(node.input, Updates.BOTH),))


def _filters_elements(node: p.Calc) -> bool:
    """Whether the condition only reads the columns of a Correlate below: the elements of a row pass or fail
    in the -U and in the +U alike."""
    if node.condition is None or not isinstance(node.input, p.Correlate):
        return False
    outer = len(node.input.input.fields)
    return all(x.index >= outer for x in node.condition.walk() if isinstance(x, InputRef))


@_satisfy.register
def _(node: p.Calc, update_form: Updates) -> p.PhysicalNode | None:
    # A filter may drop the +U alone, so the consumer would keep the old row without a -U.
    filters = node.condition is not None and not _filters_elements(node)
    if filters and update_form is Updates.AFTER and updates(node.input):
        return None
    return _over(node, update_form, (satisfy(node.input, update_form),))


@_satisfy.register
def _(node: p.TableSourceScan, update_form: Updates) -> p.PhysicalNode | None:
    has_before = RowKind.UPDATE_BEFORE in node.traits.kinds
    if update_form is Updates.BOTH and updates(node) and not has_before:
        return None
    if update_form is Updates.AFTER and has_before:
        return drop_update_before(node)
    return node


@_satisfy.register
def _(node: p.FromChangelog, update_form: Updates) -> p.PhysicalNode | None:
    """Its rows are changes by code: there is no key by which a +U alone could overwrite."""
    return (
        None
        if update_form is Updates.AFTER
        else _over(node, update_form, (satisfy(node.input, Updates.BOTH),))
    )


def drop_update_before(node: p.PhysicalNode) -> p.PhysicalNode:
    traits = replace(node.traits, kinds=node.traits.kinds - BEFORE)
    return p.DropUpdateBefore(fields=node.fields, traits=traits, input=node)


@_satisfy.register
def _(node: p.ChangelogNormalize, update_form: Updates) -> p.PhysicalNode | None:
    source = node.input.inputs[0]
    upserts = updates(source) and RowKind.UPDATE_BEFORE not in source.traits.kinds
    if upserts and update_form is Updates.AFTER and node.condition is None:
        # The consumer overwrites by key as well: nothing to normalize.
        return satisfy(source, update_form)
    return _over(node, update_form, (satisfy(node.input, Updates.AFTER),))


@_satisfy.register(p.Rank)
@_satisfy.register(p.SortLimit)
def _(node: p.Rank | p.SortLimit, update_form: Updates) -> p.PhysicalNode | None:
    if node.upsert_key is not None:
        child = satisfy(node.input, Updates.AFTER)
        if child is not None:
            return _over(node, update_form, (child,))
        node = replace(node, upsert_key=None)
    wish = Updates.AFTER if insert_only(node.input) else Updates.BOTH
    return _over(node, update_form, (satisfy(node.input, wish),))


@_satisfy.register
def _(node: p.Join, update_form: Updates) -> p.PhysicalNode | None:
    return _over(node, update_form, tuple(_join_side(node, i, update_form) for i in (0, 1)))


def _join_side(node: p.Join, side: int, update_form: Updates) -> p.PhysicalNode | None:
    """A join that overwrites may go without -U on a side only if a changed row keeps its join key: an
    upsert key of the side holds every join column."""
    child = node.inputs[side]
    if update_form is Updates.BOTH or not node.overwrites:
        return satisfy(child, Updates.BOTH)
    columns = frozenset(node.partition_keys[side])
    if updates(child) and not any(k >= columns for k in child.traits.upsert_keys):
        return None
    return satisfy(child, Updates.AFTER)


@_satisfy.register
def _(node: p.WindowJoin, update_form: Updates) -> p.PhysicalNode | None:
    return _over(node, update_form, tuple(satisfy(i, Updates.BOTH) for i in node.inputs))


@_satisfy.register
def _(node: p.LookupJoin, update_form: Updates) -> p.PhysicalNode | None:
    """A retraction needs the old row's values. A +U that finds no rows, or other rows than before, needs its
    -U, too."""
    if not updates(node.input) or node.overwrites:
        return _over(node, update_form, (satisfy(node.input, update_form),))
    if update_form is Updates.AFTER and not node.keeps_rows:
        return None
    return _over(node, update_form, (satisfy(node.input, Updates.BOTH),))


@_satisfy.register
def _(node: p.TemporalJoin, update_form: Updates) -> p.PhysicalNode | None:
    """A version lasts until the next version, so the versioned side needs no -U."""
    versions = satisfy(node.right, Updates.AFTER) or satisfy(node.right, Updates.BOTH)
    if not updates(node.left) or node.overwrites:
        return _over(node, update_form, (satisfy(node.left, update_form), versions))
    if update_form is Updates.AFTER and node.kind is not JoinKind.LEFT:
        return None  # as of a lookup join
    return _over(node, update_form, (satisfy(node.left, Updates.BOTH), versions))


@_satisfy.register
def _(node: p.Sink, update_form: Updates) -> p.PhysicalNode | None:
    child = satisfy(node.input, update_form)
    return None if child is None else with_kinds(with_inputs(node, (child,)), frozenset())
