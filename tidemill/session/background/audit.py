"""Audits: VERIFY JOB of a running job, now and then."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from tidemill.errors import TidemillError
from tidemill.runtime.events import JobAudited
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.verify import EQUAL, SKIPPED, Finding
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.session.context import SessionContext
from tidemill.session.jobs.verification import verifiable, verified


@dataclass(slots=True)
class Auditor:
    """Of one job. ``context``: a session of its own, as statements change the one that started the job."""

    job: RestartingJob
    context: SessionContext

    @classmethod
    def of(cls, job: RestartingJob, context: SessionContext) -> Auditor | None:
        """None if the job cannot be verified, with a warning that says why."""
        own = copy.copy(context)
        own.work = ""
        try:
            verifiable(job)
        except TidemillError as e:
            context.warn(f"Job {job.job_id} is not audited. {e.message}.")
            return None
        return cls(job, own)

    def act(self) -> None:
        """One audit, which tells its result."""
        try:
            findings = verified(self.job, self.context)
        except Exception as e:
            error = e.message if isinstance(e, TidemillError) else f"{type(e).__name__}: {e}"
            event = JobAudited(job_id=self.job.job_id, error=error)
        else:
            differences = [f for f in findings if f.result not in (EQUAL, SKIPPED)]
            event = JobAudited(
                job_id=self.job.job_id,
                differences=len(differences),
                first=_said(differences[0]) if differences else "",
            )
        assert isinstance(self.job.restart, InsertsStart)
        self.job.restart.request.on_event(event)


def _said(finding: Finding) -> str:
    return " ".join(filter(None, (finding.part, finding.result, finding.key, finding.value)))
