"""The Top-N that Flink runs without retractions (UpdateFastStrategy), because updates only improve rows.

An update of such a changelog only raises, lowers or keeps a value (``traits.monotonicity``), and an upsert
key identifies the updated row.
"""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.traits.keys import upsert_keys_in_key_group
from tidemill.physical.traits.monotonicity import Moves, directions, first_rows
from tidemill.physical.tree import map_up
from tidemill.plan.expressions import SortKey


def update_fast(root: p.PhysicalNode) -> p.PhysicalNode:
    """The plan, before changelog modes are assigned, with ``upsert_key`` set in each such Top-N."""
    return map_up(root, _keyed)


def _keyed(node: p.PhysicalNode) -> p.PhysicalNode:
    first = first_rows(node)
    if first is None or insert_only(node.inputs[0]):
        return node
    below, partition = node.inputs[0], frozenset(first.partition)
    fitting = [key for key in upsert_keys_in_key_group(below) if key >= partition]
    if not fitting or not _improves_only(below, first.order):
        return node
    chosen = min(fitting, key=lambda key: (len(key), sorted(key)))
    return first.keyed(tuple(sorted(chosen)))


def _improves_only(node: p.PhysicalNode, order: tuple[SortKey, ...]) -> bool:
    """Whether updates never make a row of ``node`` worse in ``order``."""
    moves = directions(node)
    return bool(order) and all(_fits(moves[k.index], k) for k in order)


def _fits(moves: Moves, key: SortKey) -> bool:
    return moves is Moves.NOT or moves is (Moves.DOWN if key.ascending else Moves.UP)
