"""EXPLAIN: the text of a statement's plans.

CHANGELOG_MODE adds it to every node of a streaming plan; EXECUTION_PLAN, a detail of Tidemill's own, adds
what an epoch runs. ESTIMATED_COST and PLAN_ADVICE need statistics that Tidemill does not keep and are
refused, as is the JSON form.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError
from tidemill.physical.batch.explain import explain_batch_text
from tidemill.physical.explain.text import explain_text
from tidemill.physical.plan import PhysicalPlan
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.runtime import batch_job, job_start
from tidemill.runtime.execution_text import combined, execution_text
from tidemill.session import execution, planning
from tidemill.session.bundles import bundled
from tidemill.session.context import SessionContext

_CHANGELOG_MODE, _EXECUTION_PLAN = "CHANGELOG_MODE", "EXECUTION_PLAN"


def text(context: SessionContext, plans: Sequence[n.LogicalNode], details: tuple[str, ...]) -> str:
    """The sections; several INSERTs show one tree each in every section."""
    wanted = {detail.upper() for detail in details}
    batch = execution.is_batch(context)
    for detail in details:
        if detail.upper() not in ((_CHANGELOG_MODE,) if batch else (_CHANGELOG_MODE, _EXECUTION_PLAN)):
            mode = " in batch mode" if detail.upper() == _EXECUTION_PLAN else ""
            raise NotSupportedError(f"EXPLAIN {detail}{mode} is not supported")
    _check_length(plans)
    if batch:
        run = [planning.batch(context, planning.optimized(plan)) for plan in plans]
        runs = [batch_job.how_read(root, context.time_zone) for root in run]
        return with_room(lambda: explain_batch_text(plans, run, runs))
    config = bundled(context.configuration, plans)
    physical = planning.physical_job(config, [planning.optimized(plan) for plan in plans])
    try:
        job = job_start.unread_job(
            [plan.runs for plan in physical],
            config,
            frames=context.frames,
            zone=context.time_zone,
        )
    except NotSupportedError:
        # A plan is shown though a node of it cannot run yet.
        if _EXECUTION_PLAN in wanted:
            raise
        return _shown(plans, physical, wanted, frozenset())
    shown = _shown(plans, physical, wanted, combined(*job))
    return f"{shown}\n{execution_text(*job)}" if _EXECUTION_PLAN in wanted else shown


def _shown(
    plans: Sequence[n.LogicalNode], physical: list[PhysicalPlan], wanted: set[str], fewer: frozenset[str]
) -> str:
    changelog_mode = _CHANGELOG_MODE in wanted
    return with_room(lambda: explain_text(plans, physical, changelog_mode=changelog_mode, combined=fewer))


LONGEST = 100_000
"""Lines of a tree: one that reads a view twice shows it twice, so n such views over each other are 2^n."""


def _check_length(plans: Sequence[n.LogicalNode]) -> None:
    lines = with_room(lambda: sum(map(_lines, plans)))
    if lines > LONGEST:
        message = f"EXPLAIN of a plan of {lines:,} lines is not supported"
        raise NotSupportedError(message, hint="Its views and WITH queries read others several times each.")


@once_per_node
def _lines(node: n.LogicalNode) -> int:
    return 1 + sum(map(_lines, node.inputs))
