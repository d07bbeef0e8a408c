"""Who a job is: the record that its checkpoint is taken up by, or refused."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from tidemill.physical import nodes as p
from tidemill.physical.explain import describe
from tidemill.physical.identity import job_digest
from tidemill.runtime.checkpoint import JobIdentity
from tidemill.runtime.compile.context import CompileContext


def job_identity(roots: Sequence[p.PhysicalNode], context: CompileContext, name: str) -> JobIdentity:
    """The identity of a new job; ``roots`` in any order make the same fingerprint."""
    digests = context.digests
    return JobIdentity(
        job_id=uuid.uuid4().hex,
        fingerprint=job_digest([digests.of(root) for root in roots]),
        parallelism=context.parallelism,
        nodes={digests.of(node): describe(node) for root in roots for node in _bottom_up(root)},
        operators={key: spec.fingerprint for key, spec in context.operators.items()},
        name=name,
    )


def _bottom_up(node: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """Inputs first."""
    for child in node.inputs:
        yield from _bottom_up(child)
    yield node
