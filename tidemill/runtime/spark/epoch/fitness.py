"""Which jobs have no rows in the JVM in their epochs, and why others have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any

from tidemill.deep_calls import with_room
from tidemill.files.storage import Storage
from tidemill.runtime import graph as g
from tidemill.runtime.arrow_rows import ArrowRows
from tidemill.runtime.placement import origin
from tidemill.runtime.spark.epoch.arrow_steps import ArrowSteps
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.programs import Told
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, NodeRows, Part, Step, United
from tidemill.runtime.stages import Stages

_ARROW = ArrowRows()


def needs_frames(outputs: Mapping[str, g.ExecNode]) -> str:
    """Why a job that writes these ``outputs`` needs Spark's frames; '' if its rows stay in Arrow."""
    return with_room(lambda: _needs_frames(outputs))


def _needs_frames(outputs: Mapping[str, g.ExecNode]) -> str:
    steps = ArrowSteps(_planned(outputs))
    made = [steps.mapped(node, iter, "") for node in outputs.values()]
    found = next(rows_of_frames(made), None)
    return "" if found is None else _reason(found.node) or "rows are chosen between operators"


def rows_of_frames(steps: Sequence[Step]) -> Iterator[NodeRows]:
    """The rows that only Spark's frames have."""
    return (step for step in all_steps(steps) if isinstance(step, NodeRows))


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """With those below, each once."""
    waiting, seen = list(steps), set[int]()
    while waiting:
        step = waiting.pop()
        if isinstance(step, Part):
            if step.key in seen:
                continue
            seen.add(step.key)
        yield step
        match step:
            case Mapped(below=below) | Part(whole=below):
                waiting.append(below)
            case Exchanged(blocks=several) | United(branches=several):
                waiting += several


def _planned(outputs: Mapping[str, g.ExecNode]) -> EpochFacts:
    """Facts that decide the same steps as those of an epoch."""
    sources: Any = {n.source: None for o in outputs.values() for n in o.walk() if isinstance(n, g.Read)}
    return EpochFacts(
        sources=sources,
        ranges={},
        state_root=Storage(""),
        run_id="",
        state={},
        epoch=0,
        time=0,
        parallelism=1,
        report=Told(),
        stages=Stages.of(list(outputs.values())),
    )


@singledispatch
def _reason(node: g.ExecNode) -> str:
    """Why ``node`` needs the JVM."""
    return "; ".join(filter(None, map(_reason, node.inputs)))


@_reason.register
def _(node: g.Read) -> str:
    return "" if node.arrow else f"Spark reads {node.source}"


@_reason.register
def _(node: g.Select) -> str:
    computed = (e for r, e in zip(node.references, node.expressions, strict=True) if r is None)
    needs = node.arrays is None and (node.condition is not None or any(e != g.UNREAD for e in computed))
    return _reason(node.input) or ("the JVM evaluates an expression" if needs else "")


@_reason.register
def _(node: g.Generate) -> str:
    return _reason(node.input) or "the JVM evaluates a table function"


@_reason.register
def _(node: g.Merge) -> str:
    made = (origin(branch, branch.columns).node for branch in node.branches)
    return "; ".join(filter(None, (_reason(branch) for branch in made if not _ARROW.follows(branch))))


@_reason.register
def _(node: g.AssignWatermark) -> str:
    return _reason(node.input) or "the JVM computes what a watermark is made of"


@_reason.register
def _(node: g.Keyed) -> str:
    return "an operator hands event time on within its partition"
