"""EXPLAIN of batch statements: the plan that runs."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.physical.batch.attributes import attributes
from tidemill.physical.batch.nodes import BatchNode
from tidemill.physical.explain.syntax_tree import syntax_tree
from tidemill.physical.explain.text import draw
from tidemill.plan import nodes as n


def explain_batch_text(logical: Sequence[n.LogicalNode], plans: Sequence[BatchNode]) -> str:
    """The three sections; ``logical`` are the bound plans, ``plans`` those that run for them."""
    texts = [batch_text(x) for x in plans]
    sections = (
        ("Abstract Syntax Tree", [syntax_tree(x) for x in logical]),
        ("Optimized Physical Plan", texts),
        ("Optimized Execution Plan", texts),
    )
    return "\n".join(f"== {title} ==\n" + "\n\n".join(parts) + "\n" for title, parts in sections)


def batch_text(plan: BatchNode) -> str:
    return draw(plan, _line, lambda node: node.inputs)


def _line(node: BatchNode) -> str:
    return f"{node.name}({', '.join(f'{k}={v}' for k, v in attributes(node))})"
