"""EXPLAIN EXECUTION_PLAN: the text of what an epoch runs, stage by stage.

A stage is one task per partition. The text lists its operators from the top, each with its id, which is
also the folder of its state below the checkpoint's ``state/``. Then it lists what the ports get, and by
which exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.runtime import graph as g
from tidemill.runtime.arrow_rows import ArrowRows
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.stages import Leaf, Stage, Stages, Task

_ARROW = ArrowRows()


def execution_text(outputs: Mapping[str, g.ExecNode], context: CompileContext) -> str:
    """``outputs``: the node that feeds each sink, or the result, by its id."""
    stages = Stages.of(list(outputs.values()))
    lines = [line for stage in stages.all for line in _stage(stage, stages, context)]
    lines += [f"{key} <- {_source(node, stages)}" for key, node in outputs.items()]
    lines += [
        f"{_name(spread.node)} runs once for {len(spread.groups) + spread.rows} readers"
        for spread in stages.spreads
    ]
    return "== Execution ==\n" + "\n".join(lines) + "\n"


def combined(outputs: Mapping[str, g.ExecNode], context: CompileContext) -> frozenset[str]:
    """The digests of operators that have a local phase before their exchange."""
    nodes = (node for output in outputs.values() for node in output.walk())
    return frozenset(context.sub_plans[n.operator] for n in nodes if isinstance(n, g.Keyed) and n.local)


def _stage(stage: Stage, stages: Stages, context: CompileContext) -> Iterator[str]:
    yield f"Stage {stage.number + 1}" + (" (in place: no exchange)" if stage.in_place else "")
    for task in _tasks(stage.task):
        uid = task.node.operator
        yield f"  {uid}: {context.descriptions[uid]}"
    for group in stage.groups:
        for leaf in group:
            yield f"    {_way(leaf, stage)} <- {_source(leaf.port.input, stages)}"


def _tasks(task: Task) -> Iterator[Task]:
    yield task
    for below in task.inputs:
        if isinstance(below, Task):
            yield from _tasks(below)


def _way(leaf: Leaf, stage: Stage) -> str:
    if stage.in_place:
        return "same partition"
    if leaf.port.summary is not None:
        return "summary to every partition"
    keys = "single" if leaf.node.single else f"hash[{', '.join(_columns(leaf))}]"
    local = ", local phase while it makes rows fewer" if leaf.node.local else ""
    return f"exchange({keys}{local})"


def _columns(leaf: Leaf) -> list[str]:
    port = leaf.port
    names = dict(zip(port.columns, port.references, strict=True))
    if port.buckets is not None:
        of = ", ".join(names[column] for column in port.buckets.of)
        names[port.buckets.column] = f"{port.buckets.count} buckets of {of}"
    return [names[key] for key in port.keys]


def _source(node: g.ExecNode, stages: Stages) -> str:
    """What makes the rows of ``node``, and what is computed on the way."""
    steps: list[str] = []
    while isinstance(node, g.Select | g.Generate):
        steps += _step(node)
        node = node.input
    way = "".join(f"{step} of " for step in steps)
    if isinstance(node, g.Read):
        return f"{way}{node.source}[{', '.join(node.columns)}]"
    if isinstance(node, g.Keyed):
        return f"{way}{_made_by(node, stages)}"
    inside = " + ".join(f"({_source(child, stages)})" for child in node.inputs)
    return f"{way}{'union' if isinstance(node, g.Merge) else 'watermarks'} of {inside}"


def _made_by(node: g.Keyed, stages: Stages) -> str:
    number = next((s.number for s in stages.all if any(t.node is node for t in _tasks(s.task))), None)
    return node.operator if number is None else f"{node.operator} (stage {number + 1})"


def _step(node: g.Select | g.Generate) -> list[str]:
    if isinstance(node, g.Generate):
        return ["generated rows"]
    pairs = zip(node.references, node.expressions, strict=True)
    computed = sum(reference is None and text != g.UNREAD for reference, text in pairs)
    steps = [f"{computed} computed columns"] if computed else []
    steps += ["filter"] * (node.condition is not None)
    place = "over Arrow" if _ARROW.go_on(node) else "in the JVM"
    return [f"{step} {place}" for step in steps] + ["own updates"] * (node.marked is not None)


def _name(node: g.ExecNode) -> str:
    return node.source if isinstance(node, g.Read) else node.operator if isinstance(node, g.Keyed) else ""
