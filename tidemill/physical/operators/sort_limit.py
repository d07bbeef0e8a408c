"""SortLimit: ORDER BY with LIMIT, or LIMIT alone."""

from __future__ import annotations

import math
from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.physical import nodes as p
from tidemill.physical.digests import canonical, hashed, incidental, joined
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, order_by
from tidemill.physical.explain.costs import Cost, own_cost
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, text_of
from tidemill.physical.operators.rank import follows_by_key, strategy, strategy_notes
from tidemill.physical.traits.changelog_mode import (
    CHANGES,
    Kinds,
    insert_only,
    modifications,
    satisfied,
)
from tidemill.physical.traits.keys import NO_KEYS, Keys, derived_keys, keys_of_input, upsert_keys
from tidemill.physical.traits.mini_batch import always, folds
from tidemill.physical.traits.monotonicity import FirstRows, first_rows


@modifications.register
def _(node: p.SortLimit) -> Kinds:
    return INSERT_ONLY if insert_only(node.input) and not node.order else CHANGES


satisfied.register(p.SortLimit, follows_by_key)


@first_rows.register
def _(node: p.SortLimit) -> FirstRows:
    return FirstRows((), node.order, lambda key: replace(node, upsert_key=key))


@upsert_keys.register
def _(node: p.SortLimit) -> Keys:
    """The single partition may reorder the changes of its rows."""
    return NO_KEYS


derived_keys.register(p.SortLimit, keys_of_input)
folds.register(p.SortLimit, always)
incidental(p.SortLimit, "upsert_key")


@lineage_of.register
def _(node: p.SortLimit, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    order = [text_of(key, below.carried) for key in node.order]
    kept_rows = hashed(joined("Limit", [below.rows, canonical(node.state_ttl), *order]))
    rows = hashed(joined(kept_rows, [canonical(node.offset), canonical(node.fetch)]))
    return replace(below, rows=rows, kept=kept_rows)


@node_name.register
def _(node: p.SortLimit) -> str:
    return "SortLimit" if node.order else "Limit"


@attributes.register
def _(node: p.SortLimit, form: Form) -> Attributes:
    fetch = "unlimited" if node.fetch is None else str(node.fetch)
    limits: Attributes = [("offset", f"[{node.offset}]"), ("fetch", f"[{fetch}]")]
    if not node.order:
        return limits
    return [("orderBy", order_by(node.order, node)), *limits, ("strategy", f"[{strategy(node)}]")]


@own_cost.register
def _(node: p.SortLimit, rows: tuple[float, ...]) -> Cost:
    limit = math.inf if node.fetch is None else float(node.offset + node.fetch)
    kept_rows = min(rows[0], limit)
    width = (3 + len(node.fields)) * 4
    steps = rows[0] * math.log(max(kept_rows, math.e)) if node.order else kept_rows
    return Cost(max(kept_rows - node.offset, 0.0), kept_rows, steps * width)


@runs_otherwise.register
def _(shown: p.SortLimit, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.SortLimit)
    return strategy_notes(shown, runs)
