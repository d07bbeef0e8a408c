"""The gateway's metrics: current sessions and operations, counts of statements, requests and epochs of jobs.

They are served in Prometheus's format or as JSON. Cost: a lock and an addition per request and epoch; the
text is built on request.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.gateway.api import OperationStatus
from tidemill.session.history import job_metrics
from tidemill.session.history.job_metrics import JobMetrics, Labels, Sample, prometheus_text

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class _Latency:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class Metrics:
    """Any thread may record and read."""

    jobs: JobMetrics = field(default_factory=JobMetrics)
    _ended: Counter[str] = field(default_factory=Counter)
    _requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    _latency: dict[str, _Latency] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def operation(self, status: OperationStatus) -> None:
        """Counts a change of an operation to ``status``."""
        with self._lock:
            self._ended[status.value] += 1

    def request(self, route: str, status: int, seconds: float) -> None:
        """Counts a request. ``route``: the name of the route, not the path."""
        with self._lock:
            self._requests[route, status] += 1
            self._latency.setdefault(route, _Latency()).add(seconds)

    def as_json(self, now: Mapping[str, int], user: str | None = None) -> dict[str, Any]:
        """``now``: numbers of sessions, and of operations by status. ``user``: owner of the jobs; None:
        all."""
        families: dict[str, Any] = {}
        for name, labels, value in self.samples(now, user):
            if labels:
                families.setdefault(name, []).append({**dict(labels), "value": value})
            else:
                families[name] = value
        return families

    def as_text(self, now: Mapping[str, int], user: str | None = None) -> str:
        """As ``as_json``, in the text format of Prometheus."""
        return prometheus_text(self.samples(now, user))

    def samples(self, now: Mapping[str, int], user: str | None = None) -> Iterator[Sample]:
        """Names, labels and values; samples of one family are adjacent."""
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
        yield from self.jobs.samples(user)


FAMILIES = (
    "tidemill_sessions",
    "tidemill_operations",
    "tidemill_operations_total",
    "tidemill_requests_total",
    *job_metrics.FAMILIES,
)
"""The families with single values: all but the histogram of request times."""


def _histogram(name: str, labels: Labels, latency: _Latency) -> Iterator[Sample]:
    count = 0
    for bound, bucket_count in zip((*map(str, BUCKETS), "+Inf"), latency.counts, strict=True):
        count += bucket_count
        yield f"{name}_bucket", (*labels, ("le", bound)), count
    yield f"{name}_sum", labels, latency.total
    yield f"{name}_count", labels, count
