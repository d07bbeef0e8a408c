"""The RowKinds on every edge: kinds are derived bottom-up, the need of -U top-down.

Two passes, as in Flink's planner. ``modifications`` (bottom-up, while the tree is built) says whether
a node inserts, updates, deletes; an update is written UPDATE_AFTER there. ``assign`` (top-down) gives
every node the update form its consumer wants and writes the final kinds into the traits: -U is produced
only where some consumer above needs it. Invariant: no node produces a kind that its consumer refuses.
"""

from __future__ import annotations

from enum import Enum

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.errors import InternalError
from tidemill.physical import nodes as p
from tidemill.physical.questions import unanswered, without_default
from tidemill.physical.tree import with_inputs, with_kinds
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


@without_default
def modifications(node: p.PhysicalNode) -> Kinds:
    """The kinds that ``node`` emits, without -U, from its inputs' traits."""
    raise unanswered("which kinds of changes it emits", node)


def kinds_of_inputs(node: p.PhysicalNode) -> Kinds:
    """The kinds of a node that passes on changes."""
    return frozenset().union(*(i.traits.kinds for i in node.inputs)) - BEFORE


def only_inserts(node: p.PhysicalNode) -> Kinds:
    return INSERT_ONLY


def all_changes(node: p.PhysicalNode) -> Kinds:
    return CHANGES


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
    return satisfied(node, update_form)


@without_default
def satisfied(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    """``node`` over inputs in the forms that it needs (``satisfy``) to emit updates in ``update_form``; None
    if it cannot."""
    raise unanswered("which updates it needs", node)


def needs_same_form(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    """The answer of stateless nodes: their inputs need the same form."""
    return over(node, update_form, tuple(satisfy(i, update_form) for i in node.inputs))


def needs_both(node: p.PhysicalNode, update_form: Updates) -> p.PhysicalNode | None:
    """The answer of operators that need a -U with every +U."""
    return over(node, update_form, tuple(satisfy(i, Updates.BOTH) for i in node.inputs))


def over(
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
