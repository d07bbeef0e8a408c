"""EXPLAIN: the text of a statement's plans.

CHANGELOG_MODE adds it to every node of a streaming plan, PLAN_ADVICE what to set otherwise,
JSON_EXECUTION_PLAN the plan as a graph, ESTIMATED_COST what Flink's optimizer counts with for each node;
EXECUTION_PLAN, a detail of Tidemill's own, adds what an epoch runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.config.batch_options import SHUFFLE_MODE
from tidemill.config.epoch_options import RESIDENT
from tidemill.config.execution_options import ARROW_EXPRESSIONS, PARALLELISM
from tidemill.config.option import Configuration
from tidemill.deep_calls import with_room
from tidemill.errors import NotSupportedError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.physical.batch.view.flink_view import flink_view
from tidemill.physical.batch.view.text import Runs, batch_graph, exchange_modes, explain_batch_text
from tidemill.physical.explain.advice import advice_of
from tidemill.physical.explain.text import execution_graph, explain_text
from tidemill.physical.nodes import PhysicalNode, Sink
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.plan.optimizer import optimize
from tidemill.runtime.batch import frames, scans
from tidemill.runtime.compile.result import result_node
from tidemill.runtime.execution_text import combined, execution_text
from tidemill.runtime.graph import ExecNode
from tidemill.runtime.job.graphs import unread_job
from tidemill.runtime.spark.epoch.fitness import needs_frames
from tidemill.runtime.spark.resident.epochs import unfit
from tidemill.runtime.spark.settings import chosen_master
from tidemill.session import execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.mode import is_batch
from tidemill.session.planning import bundled
from tidemill.spark_internals.driver import active_master

_CHANGELOG_MODE, _EXECUTION_PLAN = "CHANGELOG_MODE", "EXECUTION_PLAN"
_JSON, _ADVICE, _COST = "JSON_EXECUTION_PLAN", "PLAN_ADVICE", "ESTIMATED_COST"
_BATCH = (_CHANGELOG_MODE, _JSON)
_STREAMING = (*_BATCH, _EXECUTION_PLAN, _ADVICE, _COST)
_UNSET = -1
"""The parallelism of a plan where no option says it."""


def text(context: SessionContext, plans: Sequence[n.LogicalNode], details: tuple[str, ...]) -> str:
    """The sections; several INSERTs show one tree each in every section."""
    wanted = {detail.upper() for detail in details}
    batch = is_batch(context)
    for detail in details:
        if detail.upper() not in (_BATCH if batch else _STREAMING):
            mode = " under batch mode" if detail.upper() in _STREAMING else ""
            raise NotSupportedError(f"EXPLAIN {detail} is not supported{mode}.")
    _check_length(plans)
    if batch:
        with file_snapshot():
            return _batch_text(context, plans, wanted)
    config = bundled(context.configuration, plans)
    optimized = [optimize(plan) for plan in plans]
    run = planning.physical_job(config, optimized)
    # What cannot run is not shown either.
    job = unread_job(run, config, frames=context.frames, zone=context.time_zone)
    views = planning.flink_views(config, optimized)
    shown = _shown(plans, views, run, wanted, combined(*job), config)
    if _EXECUTION_PLAN not in wanted:
        return shown
    return f"{shown}\n{execution_text(*job)}{_epochs(context, run, job[0], config)}"


def _epochs(
    context: SessionContext,
    roots: Sequence[PhysicalNode],
    outputs: Mapping[str, ExecNode],
    config: Configuration,
) -> str:
    """Whether epochs are resident; '' if the option is off."""
    if not config.read(RESIDENT):
        return ""
    master = active_master() or chosen_master(config)
    arrays, zone = config.read(ARROW_EXPRESSIONS), context.time_zone
    nodes = {
        key: node
        if isinstance(root, Sink)
        else result_node(node, root.fields, text=context.rendered, zone=zone, arrays=arrays)[0]
        for (key, node), root in zip(outputs.items(), roots, strict=True)
    }
    why = unfit(needs_frames(nodes), master)
    return f"Epochs are Spark jobs, because {why}\n" if why else "Epochs are resident\n"


def _batch_text(context: SessionContext, plans: Sequence[n.LogicalNode], wanted: set[str]) -> str:
    run = [planning.batch(context, optimize(plan)) for plan in plans]
    views = with_room(lambda: [flink_view(root, context.configuration) for root in run])
    runs = [
        {**scans.how_read(root, context.time_zone), **_exchanges(context, root, view)}
        for root, view in zip(run, views, strict=True)
    ]
    shown = with_room(lambda: explain_batch_text(plans, views, runs))
    if _JSON not in wanted:
        return shown
    return shown + _graph(with_room(lambda: batch_graph(views, _parallelism(context.configuration))))


def _exchanges(context: SessionContext, root: PhysicalNode, view: PhysicalNode) -> Runs:
    """Spark is asked only where a way was."""
    if SHUFFLE_MODE.key not in context.configuration:
        return {}
    mode = frames.shuffle_mode(root, execution.job_request(context, "explain"))
    return exchange_modes(view, mode, adaptive=not mode.startswith(frames.PIPED))


def _shown(
    plans: Sequence[n.LogicalNode],
    views: list[PhysicalNode],
    run: list[PhysicalNode],
    wanted: set[str],
    fewer: frozenset[str],
    config: Configuration,
) -> str:
    advice = advice_of(views, config) if _ADVICE in wanted else None
    shown = with_room(
        lambda: explain_text(
            plans,
            views,
            run,
            changelog_mode=_CHANGELOG_MODE in wanted,
            combined=fewer,
            advice=advice,
            costs=_COST in wanted,
        )
    )
    if _JSON not in wanted:
        return shown
    return shown + _graph(with_room(lambda: execution_graph(views, _parallelism(config))))


def _graph(document: str) -> str:
    return f"\n== Physical Execution Plan ==\n{document}"


def _parallelism(config: Configuration) -> int:
    return config.read(PARALLELISM) or _UNSET


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
