"""The logical rules in order, and the driver that applies them.

A rule is a function ``node -> node | None`` (None: nothing to do) over one node and what is below it.
The driver applies a rule at every node, inputs first, until none has anything left to do; a rule must
therefore make progress. Invariant, checked after each application: a node's fields keep their
names and types, nullability included; the error names the guilty rule. A node with several readers is visited
once. A node that a pass did not change is not visited again. Cost: passes times nodes; plans are small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.deep_calls import with_room
from tidemill.errors import InternalError, NotSupportedError
from tidemill.plan.nodes import LogicalNode, Subquery
from tidemill.plan.once import once_per_node
from tidemill.plan.rewrite import map_inputs, node_expressions
from tidemill.plan.rules.balance_chains import balance_chains
from tidemill.plan.rules.connect_joins import connect_joins
from tidemill.plan.rules.contradictions import contradictions
from tidemill.plan.rules.empty_inputs import empty_inputs
from tidemill.plan.rules.expand_below_windows import expand_below_windows
from tidemill.plan.rules.factor_disjunctions import factor_disjunctions
from tidemill.plan.rules.fold_unions import fold_unions
from tidemill.plan.rules.imply_filters import imply_filters
from tidemill.plan.rules.isolate_user_calls import isolate_user_calls
from tidemill.plan.rules.merge_filters import merge_filters
from tidemill.plan.rules.merge_projects import merge_picks, merge_projects
from tidemill.plan.rules.nest_json import nest_json
from tidemill.plan.rules.prune_columns import prune_columns
from tidemill.plan.rules.push_filters import push_filters
from tidemill.plan.rules.push_into_scans import push_into_scans
from tidemill.plan.rules.push_join_conditions import push_join_conditions
from tidemill.plan.rules.rows_of_nothing import rows_of_nothing
from tidemill.plan.rules.simplify_conditions import simplify_conditions
from tidemill.plan.rules.simplify_outer_joins import simplify_outer_joins
from tidemill.plan.rules.unnest_subqueries import unnest_subqueries

Rule = Callable[[LogicalNode], LogicalNode | None]
Done = dict[tuple[int, Rule], tuple[LogicalNode, LogicalNode]]
"""By node identity and rule: the node, and the result of the rule at the node and all nodes below."""
LIMIT = 100
"""Applications of one rule at one node before the driver reports a loop."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Rules that are repeated together until none changes the plan. ``root``: they see the whole plan.
    ``once``: they are not repeated, because they would find the same work again."""

    name: str
    rules: tuple[Rule, ...]
    root: bool = False
    once: bool = False


PHASES: tuple[Phase, ...] = (
    # First: it recognises the binder's forms, and conditions are pushed into its joins.
    Phase("unnest", (rows_of_nothing, unnest_subqueries), root=True),
    Phase(
        "push",
        (
            # Before rules that recurse as deep as the chains.
            balance_chains,
            simplify_conditions,
            factor_disjunctions,
            contradictions,
            empty_inputs,
            merge_filters,
            # Before the filters that prove it are moved away.
            simplify_outer_joins,
            push_filters,
            push_join_conditions,
            nest_json,
            merge_projects,
        ),
    ),
    # Branches are simplified; a source that many of them share is pruned below as one.
    Phase("fold", (fold_unions,)),
    # Every condition is at its join; a new join order lets conditions move further.
    Phase("connect", (connect_joins,), root=True),
    Phase("imply", (imply_filters,), root=True, once=True),
    Phase("push again", (push_filters, push_join_conditions, merge_projects)),
    # Filters do not move any more, so the columns that they read are final.
    Phase("prune", (prune_columns,), root=True),
    # Pruning leaves projections that only pick columns; scans have their final columns.
    Phase("settle", (expand_below_windows, merge_projects, push_into_scans)),
    # Last: merging would put the calls back into expressions.
    Phase("isolate", (isolate_user_calls, merge_picks)),
)


def optimize(plan: LogicalNode) -> LogicalNode:
    """An equivalent, cheaper plan with the same fields and rows. Shared sub-plans stay shared."""
    return with_room(lambda: _optimized(plan))


def _optimized(plan: LogicalNode) -> LogicalNode:
    done: Done = {}
    for phase in PHASES:
        plan = _settle(plan, phase, done)
    _check_no_subqueries(plan)
    return plan


@once_per_node
def _check_no_subqueries(plan: LogicalNode) -> None:
    for child in plan.inputs:
        _check_no_subqueries(child)
    parts = (part for expr in node_expressions(plan) for part in expr.walk())
    for subquery in (part for part in parts if isinstance(part, Subquery)):
        message = f"A subquery in {type(plan).__name__} is not supported"
        raise NotSupportedError(message, position=subquery.position)


def _settle(plan: LogicalNode, phase: Phase, done: Done) -> LogicalNode:
    for _ in range(LIMIT):
        changed = plan
        for rule in phase.rules:
            changed = _apply(changed, rule) if phase.root else apply_everywhere(changed, rule, done)
        if changed is plan or phase.once:
            return changed
        plan = changed
    raise InternalError(f"The rules of phase '{phase.name}' do not come to an end")


def _apply(plan: LogicalNode, rule: Rule) -> LogicalNode:
    changed = rule(plan)
    if changed is None:
        return plan
    _check(rule, plan, changed)
    return changed


def apply_everywhere(plan: LogicalNode, rule: Rule, done: Done) -> LogicalNode:
    """Applies ``rule`` at every node, inputs first. ``done`` caches the results of nodes."""
    key = id(plan), rule
    cached = done.get(key)
    if cached is None:
        # The cache keeps the node alive: another node could get the id of a freed node.
        cached = done[key] = plan, _everywhere(plan, rule, done)
    return cached[1]


def _everywhere(plan: LogicalNode, rule: Rule, done: Done) -> LogicalNode:
    node = map_inputs(plan, lambda child: apply_everywhere(child, rule, done))
    for _ in range(LIMIT):
        changed = rule(node)
        if changed is None:
            return node
        _check(rule, node, changed)
        node = changed
    raise InternalError(f"Rule {_name(rule)} does not come to an end at {type(node).__name__}")


def _check(rule: Rule, before: LogicalNode, after: LogicalNode) -> None:
    if before.fields != after.fields:
        old = ", ".join(f"{f.name} {f.type}" for f in before.fields)
        new = ", ".join(f"{f.name} {f.type}" for f in after.fields)
        raise InternalError(
            f"Rule {_name(rule)} changed the columns of {type(before).__name__}: ({old}) became ({new})"
        )


def _name(rule: Rule) -> str:
    return str(getattr(rule, "__name__", rule))
