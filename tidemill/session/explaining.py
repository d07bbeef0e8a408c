"""EXPLAIN: the text of a statement's plans.

Details are Flink's: CHANGELOG_MODE adds it to every node of a streaming plan, ESTIMATED_COST and
PLAN_ADVICE need statistics that Tidemill does not keep and are refused, as is the JSON form.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.errors import NotSupportedError
from tidemill.physical.batch.explain import explain_batch_text
from tidemill.physical.explain import explain_text
from tidemill.plan import nodes as n
from tidemill.session import execution, planning
from tidemill.session.context import SessionContext

_CHANGELOG_MODE = "CHANGELOG_MODE"


def text(context: SessionContext, plans: Sequence[n.LogicalNode], details: tuple[str, ...]) -> str:
    """The three sections; several INSERTs show one tree each in every section."""
    for detail in details:
        if detail.upper() != _CHANGELOG_MODE:
            raise NotSupportedError(f"EXPLAIN {detail} is not supported")
    if execution.is_batch(context):
        run = [planning.batch(context, planning.optimized(plan)) for plan in plans]
        return explain_batch_text(plans, run)
    physical = [planning.physical(context, planning.optimized(plan)) for plan in plans]
    return explain_text(plans, physical, changelog_mode=_CHANGELOG_MODE in {d.upper() for d in details})
