"""WindowJoin: a join of rows of the same window, emitted at its end."""

from __future__ import annotations

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, attached, emit_attributes, names
from tidemill.physical.explain.printer import Form
from tidemill.physical.finish import finish
from tidemill.physical.joins.by_pairs import join_by_pairs
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
from tidemill.physical.operators.join import join_condition, join_lineage, where_text
from tidemill.physical.operators.windows import attached_columns
from tidemill.physical.running import reads_each_change, running, with_each_change
from tidemill.physical.traits.changelog_mode import (
    INSERT_DELETE,
    Kinds,
    modifications,
    needs_both,
    satisfied,
)
from tidemill.physical.traits.mini_batch import always, awaited_windows, needs_watermark


@modifications.register
def _(node: p.WindowJoin) -> Kinds:
    """With early or late results rows are deleted and inserted."""
    return INSERT_ONLY if node.emit is None else INSERT_DELETE


satisfied.register(p.WindowJoin, needs_both)
reads_each_change.register(p.WindowJoin, always)


@needs_watermark.register
def _(node: p.WindowJoin) -> bool:
    return not node.left_window.window.proctime


@awaited_windows.register
def _(node: p.WindowJoin) -> tuple[p.Window, ...]:
    return (node.left_window.window, node.right_window.window)


@running.register
def _(node: p.WindowJoin) -> p.PhysicalNode:
    """It waits for the watermark, too. Its rewritten form reads the same changes."""
    timed = with_each_change(node)
    assert isinstance(timed, p.WindowJoin)
    return join_by_pairs(finish(timed))


@lineage_of.register
def _(node: p.WindowJoin, lineages: Lineages) -> Lineage:
    left, right = lineages.of(node.left), lineages.of(node.right)
    windows = (*attached_columns(node.left_window, left), *attached_columns(node.right_window, right))
    return join_lineage(node, left, right, *windows, canonical(node.emit))


@attributes.register
def _(node: p.WindowJoin, form: Form) -> Attributes:
    windows = frozenset(pair for pair in node.key_pairs if node.is_window(*pair))
    return [
        ("leftWindow", f"[{attached(node.left_window, node.left)}]"),
        ("rightWindow", f"[{attached(node.right_window, node.right)}]"),
        *emit_attributes(node.emit),
        ("joinType", f"[{node.kind.value}]"),
        ("where", f"[{where_text(node, join_condition(node, windows), form)}]"),
        ("select", f"[{names(node)}]"),
    ]
