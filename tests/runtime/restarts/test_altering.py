"""A job that goes on as another one, or as it was, with jobs that only wait."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import cast

import pytest

from tidemill.errors import StateError
from tidemill.runtime.job.running import RunningJob
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.runtime.restarts.strategy import NoRestart
from tidemill.runtime.snapshots import Held, SnapshotRequests


@dataclass
class Waiting:
    """Stands for a RunningJob: it runs until it is stopped."""

    name: str
    stopped: threading.Event = field(default_factory=threading.Event)
    status: str = "CANCELED"

    @property
    def job_id(self) -> str:
        return self.name

    def wait(self) -> None:
        self.stopped.wait()

    def stop(self) -> None:
        self.stopped.set()


@dataclass
class Starts:
    """Starts jobs of a name; the first ``failures`` do not start."""

    name: str
    failures: int = 0
    count: int = 0

    def __call__(self) -> RunningJob:
        self.count += 1
        if self.count <= self.failures:
            raise StateError(f"{self.name} cannot start")
        return cast(RunningJob, Waiting(self.name))


def running(old: Starts) -> RestartingJob:
    return RestartingJob.follow(old(), old, NoRestart(), lambda _: None)


def test_a_job_that_cannot_become_another_runs_as_it_was_when_that_is_said() -> None:
    old, new = Starts("old"), Starts("new", failures=1)
    job = running(old)
    with pytest.raises(StateError, match="new cannot start"):
        job.alter(new)
    assert (job.is_running(), job.job_id, old.count) == (True, "old", 2)
    job.alter(new)
    assert job.job_id == "new"
    job.cancel()


def test_a_switch_decides_which_job_is_started_again() -> None:
    old, new = Starts("old"), Starts("new", failures=1)
    job = running(old)

    def refused() -> None:
        raise StateError("the history is gone")

    with pytest.raises(StateError, match="the history is gone"):
        job.alter(new, refused)
    assert (job.job_id, old.count, new.count) == ("old", 2, 0)
    job.alter(new, lambda: None)
    assert (job.job_id, old.count, new.count) == ("new", 2, 2), "its state is the new one's"
    assert job.restart is new
    job.cancel()


def test_a_job_does_not_wait_for_who_has_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    requests, released = SnapshotRequests(), list[str]()
    plain, interrupts = Future[Held].result, [KeyboardInterrupt()]

    def result(self: Future[Held], timeout: float | None = None) -> Held:
        if interrupts:
            raise interrupts.pop()
        return plain(self, timeout)

    monkeypatch.setattr(Future, "result", result)
    with pytest.raises(KeyboardInterrupt):
        requests.ask(rests=True)
    requests.answer(lambda: Held(commit=None, release=lambda: released.append("released")))
    assert released == ["released"]
