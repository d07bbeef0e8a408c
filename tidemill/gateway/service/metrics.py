"""What the gateway counts: sessions and operations now, statements, requests, epochs of jobs.

Given as Prometheus reads it, or as JSON. Cost: a lock and an addition for each request and epoch; what is
asked for is put together when it is asked for.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.gateway.api import OperationStatus
from tidemill.runtime.progress import EpochProgress

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOBS = 1_000
"""Of how many jobs the epochs are counted: those that had one last."""
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _JobEpochs:
    user: str
    epochs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    late: int = 0
    last_seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0

    def add(self, progress: EpochProgress) -> None:
        self.epochs += 1
        self.rows_in += progress.rows_in
        self.rows_out += progress.rows_out
        self.seconds += progress.seconds
        self.late += progress.late
        self.last_seconds = progress.seconds
        self.state_rows, self.state_bytes = progress.state_rows, progress.state_bytes


@dataclass(slots=True)
class _Latency:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class Metrics:
    """Any thread may tell and ask."""

    _ended: Counter[str] = field(default_factory=Counter)
    _requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    _latency: dict[str, _Latency] = field(default_factory=dict)
    _jobs: OrderedDict[str, _JobEpochs] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def operation(self, status: OperationStatus) -> None:
        """An operation has come to ``status``."""
        with self._lock:
            self._ended[status.value] += 1

    def request(self, route: str, status: int, seconds: float) -> None:
        """``route``: its name, not the path that was asked for."""
        with self._lock:
            self._requests[route, status] += 1
            self._latency.setdefault(route, _Latency()).add(seconds)

    def epoch(self, progress: EpochProgress, user: str = "") -> None:
        """A job of a user has committed an epoch."""
        with self._lock:
            found = self._jobs.setdefault(progress.job_id, _JobEpochs(user))
            self._jobs.move_to_end(progress.job_id)
            found.add(progress)
            if len(self._jobs) > _JOBS:
                self._jobs.popitem(last=False)

    def as_json(self, now: Mapping[str, int], user: str | None = None) -> dict[str, Any]:
        """``now``: sessions, and operations by their status. ``user``: whose jobs are shown; None: all."""
        found: dict[str, Any] = {}
        for name, labels, value in self.samples(now, user):
            if labels:
                found.setdefault(name, []).append({**dict(labels), "value": value})
            else:
                found[name] = value
        return found

    def as_text(self, now: Mapping[str, int], user: str | None = None) -> str:
        """As ``as_json``, in the text format of Prometheus."""
        lines: list[str] = []
        described = ""
        for name, labels, value in self.samples(now, user):
            family = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
            if family != described:
                described = family
                kind = "histogram" if family != name else "counter" if name.endswith("_total") else "gauge"
                lines.append(f"# TYPE {family} {kind}")
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
        return "\n".join(lines) + "\n"

    def samples(self, now: Mapping[str, int], user: str | None = None) -> Iterator[tuple[str, Labels, float]]:
        """Names, labels and values. Those of one family stand together."""
        with self._lock:
            yield "tidemill_sessions", (), now.get("sessions", 0)
            for status in OperationStatus:
                yield "tidemill_operations", (("status", status.value),), now.get(status.value, 0)
            for ended, count in sorted(self._ended.items()):
                yield "tidemill_operations_total", (("status", ended),), count
            for (route, code), count in sorted(self._requests.items()):
                yield "tidemill_requests_total", (("route", route), ("code", str(code))), count
            for route, latency in sorted(self._latency.items()):
                yield from _histogram("tidemill_request_seconds", (("route", route),), latency)
            for name, attribute in _OF_JOBS.items():
                for job, epochs in self._jobs.items():
                    if user is not None and epochs.user != user:
                        continue
                    yield f"tidemill_job_{name}", (("job", job),), getattr(epochs, attribute)


_OF_JOBS = {
    "epochs_total": "epochs",
    "rows_in_total": "rows_in",
    "rows_out_total": "rows_out",
    "epoch_seconds_total": "seconds",
    "late_rows_total": "late",
    "last_epoch_seconds": "last_seconds",
    "state_rows": "state_rows",
    "state_bytes": "state_bytes",
}
FAMILIES = (
    "tidemill_sessions",
    "tidemill_operations",
    "tidemill_operations_total",
    "tidemill_requests_total",
    *(f"tidemill_job_{name}" for name in _OF_JOBS),
)
"""Those that are single values: all but the times of requests."""


def _histogram(name: str, labels: Labels, latency: _Latency) -> Iterator[tuple[str, Labels, float]]:
    count = 0
    for bound, here in zip((*map(str, BUCKETS), "+Inf"), latency.counts, strict=True):
        count += here
        yield f"{name}_bucket", (*labels, ("le", bound)), count
    yield f"{name}_sum", labels, latency.total
    yield f"{name}_count", labels, count


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
