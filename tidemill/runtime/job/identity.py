"""The identity of a job: the record that decides whether a checkpoint directory belongs to the job."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from tidemill.connectors.registry import connector
from tidemill.deep_calls import with_room
from tidemill.physical import nodes as p
from tidemill.physical.digests import PASSING, job_digest, table_digest
from tidemill.physical.explain.attributes import describe
from tidemill.physical.identities import RULES
from tidemill.physical.lineage import shown_columns
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.job.facts import function_code, job_facts


def job_identity(
    roots: Sequence[p.PhysicalNode], context: CompileContext, name: str, rules: int = RULES
) -> JobIdentity:
    """The identity of a new job. The order of ``roots`` does not change the fingerprint. ``rules``: those of
    the context's ids."""
    return with_room(lambda: _identity(roots, context, name, rules))


def _identity(roots: Sequence[p.PhysicalNode], context: CompileContext, name: str, rules: int) -> JobIdentity:
    ids, names = context.state.ids, context.state
    nodes: dict[str, str] = {}
    for node in _bottom_up(roots):
        if not isinstance(node, PASSING):
            nodes.setdefault(names.rows(node), describe(node))
    return JobIdentity(
        job_id=uuid.uuid4().hex,
        fingerprint=job_digest([ids.of(root) for root in roots]),
        nodes=nodes,
        operators={key: spec.fingerprint for key, spec in context.operators.items()},
        name=name,
        rules=rules,
        facts=job_facts(roots, context.zone),
        code=function_code(roots),
        kept=sorted({place for r in roots if isinstance(r, p.Sink) for place in _kept(r)}),
        schema=dict(context.schemas),
        sinks=sorted(table_digest(r.table, dict(r.options)) for r in roots if isinstance(r, p.Sink)),
        watermarks=sorted({describe(n) for n in _bottom_up(roots) if isinstance(n, p.WatermarkAssigner)}),
        direct=[list(pair) for pair in _direct(roots, context)],
        shown=_shown(roots, context),
    )


def _kept(sink: p.Sink) -> tuple[str, ...]:
    options = dict(sink.options)
    return connector(options).kept_places(options)


def _shown(roots: Sequence[p.PhysicalNode], context: CompileContext) -> dict[str, dict[str, dict[str, str]]]:
    """By sink and column what it shows; of the INSERTs into one sink all."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    lineages = context.state.lineages
    if lineages is None:
        return found
    for sink in (root for root in roots if isinstance(root, p.Sink)):
        columns = found.setdefault(str(sink.table.path), {})
        for name, (column, text) in shown_columns(sink, lineages).items():
            columns.setdefault(name, {})[column] = text
    return found


def _direct(roots: Sequence[p.PhysicalNode], context: CompileContext) -> Iterator[tuple[str, str]]:
    """Sinks that get rows without an operator between, and the lineage of these rows."""
    stateful = set(context.sub_plans.values())
    for root in roots:
        waiting: list[p.PhysicalNode] = [root]
        while waiting:
            node = waiting.pop()
            if context.digests.of(node) in stateful:
                continue
            if not node.inputs:
                name = str(root.table.path) if isinstance(root, p.Sink) else "the result"
                yield name, context.state.rows(root.inputs[0] if isinstance(root, p.Sink) else root)
                break
            waiting += node.inputs


def _bottom_up(roots: Sequence[p.PhysicalNode]) -> Iterator[p.PhysicalNode]:
    """Every node once, inputs first."""
    seen: set[int] = set()

    def visit(node: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.inputs:
                yield from visit(child)
            yield node

    for root in roots:
        yield from visit(root)
