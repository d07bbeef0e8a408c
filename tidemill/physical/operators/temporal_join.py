"""TemporalJoin: a join with the version of a row at a time."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjuncts
from tidemill.physical.digests import canonical
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, names
from tidemill.physical.explain.notes import Notes, Pairs, notes_beside, paired_inputs, passed, runs_otherwise
from tidemill.physical.explain.printer import Form
from tidemill.physical.joins.temporal import over_all_versions
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
from tidemill.physical.operators.join import join_condition, join_lineage, null_notes, where_text
from tidemill.physical.running import running
from tidemill.physical.traits.changelog_mode import (
    BEFORE,
    Kinds,
    Updates,
    insert_only,
    modifications,
    over,
    satisfied,
    satisfy,
    updates,
)
from tidemill.physical.traits.keys import derived_keys, keys_of_input
from tidemill.physical.traits.mini_batch import always, needs_watermark
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.types.logical import BOOLEAN


@modifications.register
def _(node: p.TemporalJoin) -> Kinds:
    return node.left.traits.kinds - BEFORE


@satisfied.register
def _(node: p.TemporalJoin, update_form: Updates) -> p.PhysicalNode | None:
    """A version lasts until the next version, so the versioned side needs no -U. A +U of the left side that
    finds no version, or another version than before, needs its -U, too."""
    versions = satisfy(node.right, Updates.AFTER) or satisfy(node.right, Updates.BOTH)
    if not updates(node.left) or node.overwrites:
        return over(node, update_form, (satisfy(node.left, update_form), versions))
    if update_form is Updates.AFTER and node.kind is not JoinKind.LEFT:
        return None
    return over(node, update_form, (satisfy(node.left, Updates.BOTH), versions))


derived_keys.register(p.TemporalJoin, keys_of_input)
needs_watermark.register(p.TemporalJoin, always)


@running.register
def _(node: p.TemporalJoin) -> p.PhysicalNode:
    return over_all_versions(node)


@lineage_of.register
def _(node: p.TemporalJoin, lineages: Lineages) -> Lineage:
    left, right = lineages.of(node.left), lineages.of(node.right)
    alive = "" if node.alive is None else right.columns[node.alive]
    versions = sorted(right.columns[c] for c in node.version_key)
    times = [left.columns[node.left_time], right.columns[node.right_time]]
    hidden = None if node.alive is None else len(node.left.fields) + node.alive
    parts = (*times, alive, canonical(node.latest), *versions)
    return join_lineage(node, left, right, *parts, hidden=hidden)


@attributes.register
def _(node: p.TemporalJoin, form: Form) -> Attributes:
    condition, versions = join_condition(node), _version_condition(node)
    parts = [versions] if condition is None else [*conjuncts(condition), versions]
    both = Call(type=BOOLEAN, function="AND", args=tuple(parts))
    return [
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{where_text(node, both, form)}]"),
        ("select", f"[{names(node)}]"),
    ]


def _version_condition(node: p.TemporalJoin) -> Expr:
    """The condition on times and keys that finds a version, as Flink prints it."""
    fields, width = (*node.left.fields, *node.right.fields), len(node.left.fields)

    def call(name: str, columns: Iterable[int]) -> Expr:
        args = tuple(InputRef(type=fields[i].type, index=i) for i in columns)
        return Call(type=BOOLEAN, function=f"__TEMPORAL_JOIN_{name}", args=args)

    times = tuple(InputRef(type=fields[i].type, index=i) for i in (node.left_time, width + node.right_time))
    keys = (
        call("CONDITION_PRIMARY_KEY", (width + i for i in node.version_key)),
        call("LEFT_KEY", node.left_keys),
        call("RIGHT_KEY", (width + i for i in node.right_keys)),
    )
    return Call(type=BOOLEAN, function="__TEMPORAL_JOIN_CONDITION", args=(*times, *keys))


@runs_otherwise.register
def _(shown: p.TemporalJoin, runs: p.PhysicalNode) -> list[str]:
    found = [] if insert_only(runs.inputs[0]) else ["keeps the versions that were found"]
    return [*null_notes(shown), *found]


@paired_inputs.register
def _(shown: p.TemporalJoin, runs: p.PhysicalNode) -> Pairs:
    assert isinstance(runs, p.TemporalJoin)
    if not _chooses(runs):
        return list(zip(shown.inputs, runs.inputs, strict=True))
    *_, source = _choosing(shown, runs)
    (_, versions) = passed(runs.right)
    assert isinstance(versions, p.Calc)
    return [(shown.left, runs.left), (source, versions.input)]


@notes_beside.register
def _(shown: p.TemporalJoin, runs: p.PhysicalNode, is_combined: bool) -> Notes:
    assert isinstance(runs, p.TemporalJoin)
    if _chooses(runs):
        yield from ((x, "by the TemporalJoin above") for x in _choosing(shown, runs)[:-1])


def _chooses(runs: p.TemporalJoin) -> bool:
    """Whether it runs over all input rows of the view, and chooses the versions itself."""
    return runs.latest or runs.alive is not None


def _choosing(shown: p.TemporalJoin, runs: p.TemporalJoin) -> list[p.PhysicalNode]:
    """The shown nodes that choose versions, top-down, and the node below them."""
    chain = [passed(shown.right)[1]]
    while isinstance(chain[-1], p.Calc | p.Rank):
        ranked = isinstance(chain[-1], p.Rank)
        chain.append(passed(chain[-1].input)[1])
        if ranked or (not runs.latest and not isinstance(chain[-1], p.Calc)):
            break
    return chain
