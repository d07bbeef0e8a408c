"""What was seen of a job as JSON, and back: the store keeps it for the processes to come.

Bounded as a look is: the plan, what each node has done, the last epochs and failures.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tidemill.gateway.service.job_watch import Failure, JobLook, NodeTotals
from tidemill.runtime.job_plan import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress, JobFailed

Json = dict[str, Any]
_COUNTS = ("name", "epochs_done", "rows_in", "rows_out", "late", "resumed")


def document(look: JobLook) -> Json:
    return {
        **{name: getattr(look, name) for name in _COUNTS},
        "plan": [asdict(node) | {"role": node.role.value} for node in look.plan],
        "nodes": {key: asdict(totals) for key, totals in look.nodes.items()},
        "epochs": [_epoch(epoch) for epoch in look.epochs],
        "failures": [[f.at, asdict(f.event)] for f in look.failures],
    }


def restored(kept: Json) -> JobLook:
    return JobLook(
        **{name: kept[name] for name in _COUNTS},
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
