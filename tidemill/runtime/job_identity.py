"""The identity of a job: the record that decides whether a checkpoint directory belongs to the job."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from tidemill.deep_calls import with_room
from tidemill.physical import nodes as p
from tidemill.physical.digests import job_digest
from tidemill.physical.explain.attributes import describe
from tidemill.runtime.checkpoint.directory import JobIdentity
from tidemill.runtime.compile.context import CompileContext


def job_identity(roots: Sequence[p.PhysicalNode], context: CompileContext, name: str) -> JobIdentity:
    """The identity of a new job. The order of ``roots`` does not change the fingerprint."""
    return with_room(lambda: _identity(roots, context, name))


def _identity(roots: Sequence[p.PhysicalNode], context: CompileContext, name: str) -> JobIdentity:
    digests = context.digests
    return JobIdentity(
        job_id=uuid.uuid4().hex,
        fingerprint=job_digest([digests.of(root) for root in roots]),
        nodes={digests.of(node): describe(node) for node in _bottom_up(roots)},
        operators={key: spec.fingerprint for key, spec in context.operators.items()},
        name=name,
    )


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
