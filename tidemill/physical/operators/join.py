"""Join: the regular join, and the answers that all joins of two inputs have in common."""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes, hints
from tidemill.physical.explain.attributes.texts import Attributes, names, ttl_hints
from tidemill.physical.explain.costs import Cost, own_cost
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.joins.by_pairs import join_by_pairs
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, sides_of, text_of
from tidemill.physical.running import running
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    Kinds,
    Updates,
    kinds_of_inputs,
    modifications,
    over,
    satisfied,
    satisfy,
    updates,
)
from tidemill.physical.traits.keys import (
    Keys,
    derived_keys,
    keeps_within,
    upsert_keys,
    upsert_keys_in_key_group,
)
from tidemill.physical.traits.mini_batch import folds, inputs_outside_conditions
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.types.logical import BOOLEAN

_FILTERS = (JoinKind.SEMI, JoinKind.ANTI)
_COST = 200
_SHARE = 0.3


@modifications.register
def _(node: p.Join) -> Kinds:
    return kinds_of_inputs(node) if node.kind in (JoinKind.INNER, JoinKind.SEMI) else CHANGES


@satisfied.register
def _(node: p.Join, update_form: Updates) -> p.PhysicalNode | None:
    return over(node, update_form, tuple(_side(node, i, update_form) for i in (0, 1)))


def _side(node: p.Join, side: int, update_form: Updates) -> p.PhysicalNode | None:
    """A join that overwrites may go without -U on a side only if a changed row keeps its join key: an
    upsert key of the side holds every join column."""
    child = node.inputs[side]
    if update_form is Updates.BOTH or not node.overwrites:
        return satisfy(child, Updates.BOTH)
    columns = frozenset(node.partition_keys[side])
    if updates(child) and not any(k >= columns for k in child.traits.upsert_keys):
        return None
    return satisfy(child, Updates.AFTER)


@upsert_keys.register
def _(node: p.Join) -> Keys:
    by_left, by_right = node.partition_keys
    left = keeps_within(upsert_keys_in_key_group(node.left), by_left)
    right = keeps_within(upsert_keys_in_key_group(node.right), by_right)
    return derived_keys(node, (left, right))


@derived_keys.register
def _(node: p.Join, inputs: tuple[Keys, ...]) -> Keys:
    left, right = inputs
    if node.kind in _FILTERS:
        return left
    shifted = frozenset(frozenset(i + len(node.left.fields) for i in k) for k in right)
    keys = {a | b for a in left for b in shifted}
    if _is_unique(node.right, node.right_keys) and node.kind in (JoinKind.INNER, JoinKind.LEFT):
        keys |= left
    if _is_unique(node.left, node.left_keys) and node.kind in (JoinKind.INNER, JoinKind.RIGHT):
        keys |= shifted
    return frozenset(keys)


def _is_unique(node: p.PhysicalNode, columns: tuple[int, ...]) -> bool:
    return any(k <= frozenset(columns) for k in node.traits.unique_keys)


@folds.register
def _(node: p.Join) -> bool:
    return node.kind not in _FILTERS


@inputs_outside_conditions.register
def _(node: p.Join) -> tuple[p.PhysicalNode, ...]:
    return node.inputs[:1] if node.kind in _FILTERS else node.inputs


@running.register
def _(node: p.Join) -> p.PhysicalNode:
    return join_by_pairs(replace(node, overwrites=False))


incidental(p.Join, "ttl_hints", "overwrites")


@lineage_of.register
def _(node: p.Join, lineages: Lineages) -> Lineage:
    return join_lineage(node, lineages.of(node.left), lineages.of(node.right))


def join_lineage(
    node: p.Join, left: Lineage, right: Lineage, *more: str, hidden: int | None = None
) -> Lineage:
    """``more``: settings beyond a Join's. ``hidden``: the index of a column that is no output.

    SELECT o.id, c.name FROM o JOIN c ON o.c = c.id              kept: o and c by o.c = c.id
    SELECT o.id, c.name, c.city FROM o JOIN c ON o.c = c.id      the same rows, one more column
    """
    both = sides_of(left.columns, right.columns)
    keys = zip(node.left_keys, node.right_keys, strict=True)
    pairs = [
        joined("Equal", [left.columns[a], right.columns[b], *_of_key(node, index)])
        for index, (a, b) in enumerate(keys)
    ]
    settings = [canonical(x) for x in (node.kind, node.left_ttl, node.right_ttl)]
    residual = "" if node.residual is None else text_of(node.residual, both)
    parts = [left.rows, right.rows, *settings, residual, *sorted(pairs), *more]
    rows = hashed(joined(type(node).__name__, parts))
    filters = node.kind in _FILTERS
    shown_columns, texts = (
        (both[: len(left.columns)], left.texts) if filters else (both, left.texts + right.texts)
    )
    carried = sides_of(left.carried, right.carried)[: len(shown_columns)]
    columns, stored = (
        tuple(f"#{hashed(joined(rows, [c]))}" for i, c in enumerate(given) if i != hidden)
        for given in (shown_columns, carried)
    )
    return Lineage(rows, columns, tuple(text for i, text in enumerate(texts) if i != hidden), stored)


def _of_key(node: p.Join, index: int) -> list[str]:
    by_identity = bool(node.by_identity) and node.by_identity[index]
    return [canonical(x) for x in (node.null_safe[index], by_identity, index < node.null_aware)]


@attributes.register
def _(node: p.Join, form: Form) -> Attributes:
    by_left, by_right = node.partition_keys
    return [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{where_text(node, join_condition(node), form)}]"),
        ("select", f"[{names(node)}]"),
        ("leftInputSpec", f"[{_spec(node.left, by_left)}]"),
        ("rightInputSpec", f"[{_spec(node.right, by_right)}]"),
    ]


def _spec(side: p.PhysicalNode, keys: tuple[int, ...]) -> str:
    """Flink's ``leftInputSpec``: the unique keys of a side, which reduce the join's state."""
    unique_keys = upsert_keys_in_key_group(side)
    if not unique_keys:
        return "NoUniqueKey"
    contained = any(k <= frozenset(keys) for k in unique_keys)
    return "JoinKeyContainsUniqueKey" if contained else "HasUniqueKey"


def where_text(node: p.Join, condition: Expr | None, form: Form) -> str:
    both = (*node.left.fields, *node.right.fields)
    printer = Printer.over(node.fields if len(node.fields) == len(both) else both, form)
    return "true" if condition is None else printer.text(condition)


def join_condition(node: p.Join, hidden: frozenset[tuple[int, int]] = frozenset()) -> Expr | None:
    """Keys and residual as one condition over left fields, then right fields. ``hidden``: pairs of keys that
    are left out."""
    fields = (*node.left.fields, *node.right.fields)

    def column(index: int) -> InputRef:
        return InputRef(type=fields[index].type, index=index)

    parts: list[Expr] = []
    keys = zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    for number, (left, right, null_safe) in enumerate(keys):
        if (left, right) in hidden:
            continue
        sides = (column(left), column(right + len(node.left.fields)))
        operator = "IS NOT DISTINCT FROM" if null_safe else "="
        equals = Call(type=BOOLEAN, function=operator, args=sides)
        parts.append(_null_aware(equals, sides) if number < node.null_aware else equals)
    if node.residual is not None:
        parts.append(node.residual)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call(type=BOOLEAN, function="AND", args=tuple(parts))


def _null_aware(equals: Expr, sides: tuple[InputRef, ...]) -> Expr:
    nulls = [Call(type=BOOLEAN, function="IS NULL", args=(s,)) for s in sides if s.type.nullable]
    return Call(type=BOOLEAN, function="OR", args=(*nulls, equals)) if nulls else equals


@hints.register
def _(node: p.Join) -> Attributes:
    return ttl_hints(node.ttl_hints)


@own_cost.register
def _(node: p.Join, rows: tuple[float, ...]) -> Cost:
    return Cost(_rows(node, *rows), _COST, _COST)


def _rows(node: p.Join, left: float, right: float) -> float:
    if node.kind in _FILTERS:
        return left
    matched = min(left, right) * _SHARE if node.left_keys else left * right
    least = {JoinKind.LEFT: left, JoinKind.RIGHT: right, JoinKind.FULL: left + right}
    return max(matched, least.get(node.kind, 0.0))


@runs_otherwise.register
def _(shown: p.Join, runs: p.PhysicalNode) -> list[str]:
    return null_notes(shown)


def null_notes(shown: p.Join) -> list[str]:
    return ["partitioned by key, NULLs counted in every partition"] if shown.counts_nulls else []
