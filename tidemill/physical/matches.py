"""MATCH_RECOGNIZE in a stream: Match over an exchange by its partition."""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes import node_name
from tidemill.physical.finish import PENDING, exchange, finish
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.physical.tree import visible
from tidemill.plan import nodes as n


def plan_match(node: n.MatchRecognize, child: p.PhysicalNode) -> p.PhysicalNode:
    if not insert_only(child):
        raise NotSupportedError(
            "Match Recognize doesn't support consuming update and delete changes which is produced by node"
            f" {node_name(visible(child))}: a match that was given cannot be taken back",
            hint="Match over a table that only grows.",
        )
    return finish(
        p.Match(
            fields=node.fields,
            traits=PENDING,
            input=exchange(child, node.partition),
            partition=node.partition,
            order=node.order,
            pattern=node.pattern,
            definitions=node.definitions,
            measures=node.measures,
        )
    )
