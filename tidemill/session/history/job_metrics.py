"""What is counted of jobs: their epochs, how far event time has come, their restarts, their largest keys.

Of a gateway's jobs, and of those of ``tidemill run``. Cost: a lock and additions for each epoch.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tidemill.runtime.events import JobAudited, JobBegun, JobEnded, JobEvent, JobFailed
from tidemill.runtime.progress import EpochProgress

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Labels, float]
STATUSES = ("RUNNING", "RESTARTING", "FINISHED", "CANCELED", "FAILED")
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""Of what ``prometheus_text`` gives."""
_JOBS = 1_000
"""How many jobs are counted: those that did something last."""


@dataclass(slots=True)
class _JobEpochs:
    user: str
    name: str = ""
    begun: float = 0.0
    status: str = ""
    epochs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    late: int = 0
    restarts: int = 0
    audits: int = 0
    audited: float = 0.0
    differences: int = 0
    last_seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    watermark: int | None = None
    largest_keys: dict[str, int] = field(default_factory=dict)

    def add(self, progress: EpochProgress) -> None:
        self.epochs += 1
        self.rows_in += progress.rows_in
        self.rows_out += progress.rows_out
        self.seconds += progress.seconds
        self.late += progress.late
        self.last_seconds = progress.seconds
        self.state_rows, self.state_bytes = progress.state_rows, progress.state_bytes
        self.watermark = progress.watermark
        self.largest_keys |= {key: node.largest_key for key, node in progress.nodes.items() if node.keyed}


@dataclass(slots=True)
class JobMetrics:
    """Any thread may tell and ask. ``statuses``: of a user's jobs, by their ids, where these are known better
    than by events; ``clock``: seconds since 1970."""

    statuses: Callable[[str], Mapping[str, str]] = lambda _: {}
    clock: Callable[[], float] = time.time
    _jobs: OrderedDict[str, _JobEpochs] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def epoch(self, progress: EpochProgress, user: str = "") -> None:
        """A job of a user has committed an epoch."""
        with self._lock:
            self._job(progress.job_id, user).add(progress)

    def event(self, event: JobEvent, user: str = "") -> None:
        if not isinstance(event, JobBegun | JobFailed | JobAudited | JobEnded):
            return
        with self._lock:
            if isinstance(event, JobEnded) and event.job_id not in self._jobs:
                return  # a batch statement, which has no epochs
            found = self._job(event.job_id, user)
            match event:
                case JobBegun():
                    found.name, found.status = event.name, "RUNNING"
                    found.begun = found.begun or self.clock()
                case JobFailed():
                    found.restarts += event.wait is not None
                    found.status = "FAILED" if event.wait is None else "RESTARTING"
                case JobAudited(error=""):
                    found.audits, found.audited = found.audits + 1, self.clock()
                    found.differences = event.differences
                case JobEnded():
                    found.status = event.status

    def seen(self) -> list[tuple[str, str, str, float]]:
        """Id, name, status and begin of each job, by its events alone."""
        with self._lock:
            return [(job, j.name, j.status, j.begun) for job, j in self._jobs.items()]

    def samples(self, user: str | None = None) -> Iterator[Sample]:
        """Names, labels and values, those of one family together. ``user``: whose jobs; None: all."""
        with self._lock:
            jobs = {job: j for job, j in self._jobs.items() if user is None or j.user == user}
            for name, attribute in _COUNTS.items():
                for job, epochs in jobs.items():
                    yield f"tidemill_job_{name}", (("job", job),), getattr(epochs, attribute)
            yield from _event_time(jobs, self.clock())
            audited = {job: epochs for job, epochs in jobs.items() if epochs.audits}
            for name, attribute in _AUDITS.items():
                for job, epochs in audited.items():
                    yield f"tidemill_job_{name}", (("job", job),), getattr(epochs, attribute)
            for job, epochs in jobs.items():
                for operator, rows in epochs.largest_keys.items():
                    yield _LARGEST, (("job", job), ("operator", operator)), rows
            heard = {job: (j.user, j.status) for job, j in jobs.items()}
        yield from self._statuses(heard)

    def _statuses(self, heard: Mapping[str, tuple[str, str]]) -> Iterator[Sample]:
        """Of each job every status, 1 for the one that it has. ``heard``: user, and status by events."""
        known = {user: self.statuses(user) for user in {user for user, _ in heard.values()}}
        for job, (user, status) in heard.items():
            now = known[user].get(job, status)
            for one in STATUSES if now else ():
                yield _STATUS, (("job", job), ("status", one)), int(one == now)

    def _job(self, job_id: str, user: str) -> _JobEpochs:
        found = self._jobs.setdefault(job_id, _JobEpochs(user))
        self._jobs.move_to_end(job_id)
        if len(self._jobs) > _JOBS:
            self._jobs.popitem(last=False)
        return found


def _event_time(jobs: Mapping[str, _JobEpochs], now: float) -> Iterator[Sample]:
    """Of jobs that have one; how far it is behind grows while a job does nothing."""
    reached = {job: j.watermark / 1000 for job, j in jobs.items() if j.watermark is not None}
    for job, watermark in reached.items():
        yield _WATERMARK, (("job", job),), watermark
    for job, watermark in reached.items():
        yield _BEHIND, (("job", job),), now - watermark


_WATERMARK, _BEHIND = "tidemill_job_watermark_timestamp_seconds", "tidemill_job_watermark_behind_seconds"
_LARGEST, _STATUS = "tidemill_job_largest_key_rows", "tidemill_job_status"
_COUNTS = {
    "epochs_total": "epochs",
    "rows_in_total": "rows_in",
    "rows_out_total": "rows_out",
    "epoch_seconds_total": "seconds",
    "late_rows_total": "late",
    "restarts_total": "restarts",
    "last_epoch_seconds": "last_seconds",
    "state_rows": "state_rows",
    "state_bytes": "state_bytes",
}
_AUDITS = {
    "audits_total": "audits",
    "last_audit_timestamp_seconds": "audited",
    "audit_differences": "differences",
}
FAMILIES = (
    *(f"tidemill_job_{name}" for name in (*_COUNTS, *_AUDITS)),
    *(_WATERMARK, _BEHIND, _LARGEST, _STATUS),
)


def prometheus_text(samples: Iterator[Sample]) -> str:
    """In the text format of Prometheus."""
    lines: list[str] = []
    described = ""
    for name, labels, value in samples:
        family = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        if family != described:
            described = family
            kind = "histogram" if family != name else "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# TYPE {family} {kind}")
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
        lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
