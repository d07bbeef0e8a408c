"""What was seen of a job as JSON, and back: a gateway's store keeps it for the processes to come. And what
there is to know of a job that has ended.

Bounded as a look is: the plan, what each node has done, the last epochs and failures.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from tidemill.config.secrets import masked
from tidemill.runtime.job_plan import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress, JobEnded, JobFailed, SavepointWritten
from tidemill.runtime.stage_runs import rows_from_sources
from tidemill.session.history.watch import Failure, JobLook, NodeTotals

Json = dict[str, Any]
VERSION = 1
_TOLD = ("statement", "options", "directory")
"""What documents of earlier versions lack, as they do ``savepoints``."""
_COUNTS = ("name", "epochs_done", "rows_in", "rows_out", "late", "resumed")


def document(look: JobLook) -> Json:
    return {
        **{name: getattr(look, name) for name in _COUNTS},
        **{name: getattr(look, name) for name in _TOLD},
        "savepoints": [asdict(savepoint) for savepoint in look.savepoints],
        "plan": [asdict(node) | {"role": node.role.value} for node in look.plan],
        "nodes": {key: asdict(totals) for key, totals in look.nodes.items()},
        "epochs": [_epoch(epoch) for epoch in look.epochs],
        "failures": [[f.at, asdict(f.event)] for f in look.failures],
    }


def record(ended: JobEnded, seen: JobLook | None) -> Json:
    """All of a run. ``seen``: what was seen of it on its way; of a batch job nothing but its plan is."""
    look = seen or JobLook(rows_in=rows_from_sources(ended.operators), rows_out=ended.rows_out)
    told = replace(look, name=ended.name, plan=ended.plan, statement=ended.statement, options=ended.options)
    return {
        "version": VERSION,
        "id": ended.job_id,
        "mode": ended.mode,
        "status": ended.status,
        "error": masked(ended.error),
        "begun": int(ended.begun * 1000),
        "ended": int(ended.ended * 1000),
        **document(told),
        "stages": [asdict(stage) | {"skew": stage.skew} for stage in ended.stages],
        "operators": [asdict(operator) for operator in ended.operators],
        "slow": [asdict(task) for task in ended.slow],
        "slow_nodes": [asdict(node) for node in ended.slow_nodes],
        "notes": list(ended.notes),
        "partitions": [{"table": p.table, "read": p.read, "of": p.of} for p in ended.partitions],
    }


def restored(kept: Json) -> JobLook:
    return JobLook(
        **{name: kept[name] for name in _COUNTS},
        **{name: kept[name] for name in _TOLD if name in kept},
        savepoints=tuple(SavepointWritten(**savepoint) for savepoint in kept.get("savepoints", ())),
        plan=tuple(map(_node, kept["plan"])),
        nodes={key: NodeTotals(**totals) for key, totals in kept["nodes"].items()},
        epochs=tuple(EpochProgress(**epoch) for epoch in kept["epochs"]),
        failures=tuple(Failure(at, JobFailed(**event)) for at, event in kept["failures"]),
    )


def _epoch(epoch: EpochProgress) -> Json:
    """Without its nodes: they are in the totals."""
    return {name: value for name, value in asdict(epoch).items() if name != "nodes"}


def _node(kept: Json) -> PlanNode:
    return PlanNode(**{**kept, "role": PlanRole(kept["role"]), "inputs": tuple(kept["inputs"])})
