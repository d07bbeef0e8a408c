"""The name and the attributes of each physical node in EXPLAIN.

``dispatch`` has the questions, ``texts`` the parts that several answers have in common. An operator's answers
stand in ``physical.operators``.
"""

from __future__ import annotations

from tidemill.physical.explain.attributes.dispatch import (
    attributes,
    describe,
    execution_name,
    hints,
    node_name,
)
from tidemill.physical.explain.attributes.texts import joined, window_text

__all__ = [
    "attributes",
    "describe",
    "execution_name",
    "hints",
    "joined",
    "node_name",
    "window_text",
]
