"""EXPLAIN: the text of a statement's plans."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.session.context import SessionContext


def text(context: SessionContext, plans: Sequence[n.LogicalNode], details: tuple[str, ...]) -> str:
    raise NotSupportedError("EXPLAIN is not supported")
