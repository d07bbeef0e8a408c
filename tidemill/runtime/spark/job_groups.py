"""Spark's work under a name, so that another thread can give it up.

Spark forgets that a group was given up when adaptive execution submits its next stage: it is told again until
the group's work has ended.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext

from tidemill.runtime.spark.pools import POOL, in_turn
from tidemill.spark_internals.driver import active_context
from tidemill.spark_internals.errors import JavaError
from tidemill.spark_internals.scheduler import cancel_group, wait_for_events

_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_AGAIN_SECONDS = 0.2
_REMEMBERED = 1000
TASKS_END_SECONDS = 10.0
_LOOK_SECONDS = 0.02
_TOLD_MILLIS = 200


@dataclass(slots=True)
class _Groups:
    """Which groups are at work, and which of late were given up."""

    _at_work: dict[str, threading.Event] = field(default_factory=dict)
    _given_up: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, group: str) -> tuple[threading.Event, bool]:
        """What is set when the work has ended, and whether it was given up before it began."""
        ended = threading.Event()
        with self._lock:
            self._at_work[group] = ended
            return ended, group in self._given_up

    def end(self, group: str, ended: threading.Event) -> None:
        with self._lock:
            if self._at_work.get(group) is ended:
                del self._at_work[group]
        ended.set()

    def give_up(self, group: str) -> threading.Event | None:
        """What is set when its work has ended; None where none has begun."""
        with self._lock:
            self._given_up.append(group)
            return self._at_work.get(group)

    def was_given_up(self, group: str) -> bool:
        with self._lock:
            return group in self._given_up


class _Here(threading.local):
    """``group``: of the work of this thread."""

    group = ""


_GROUPS, _HERE = _Groups(), _Here()


@contextmanager
def grouped(context: SparkContext, group: str, name: str, *, in_parts: bool = False) -> Iterator[None]:
    """Spark jobs that this thread starts inside belong to ``group``; later jobs belong to the former group
    again. '' is no group, and has no pool of its own. Work ``in_parts`` has no pool either: its parts take
    turns."""
    if not group:
        yield
        return
    own = {key: context.getLocalProperty(key) for key in (*_GROUP, POOL)}
    ended, given_up = _GROUPS.begin(group)
    if given_up:
        _cancel(context, group)
        _keep_giving_up(context, group, ended)
    context.setJobGroup(group, name, interruptOnCancel=True)
    former, _HERE.group = _HERE.group, group
    try:
        with nullcontext() if in_parts else in_turn(context):
            yield
    finally:
        _HERE.group = former
        for key, value in own.items():
            _set(context, key, value)
        _GROUPS.end(group, ended)


def give_up(context: SparkContext, group: str) -> None:
    """Ends the group's Spark jobs, those that are about to start among them; returns at once. A group that
    was given up runs nothing any more. Of one that is not at work Spark is not told."""
    ended = _GROUPS.give_up(group)
    if ended is not None:
        _cancel(context, group)
        _keep_giving_up(context, group, ended)


def group_of_this_thread() -> str:
    """The group that this thread's work belongs to; '' for none."""
    return _HERE.group


def was_given_up(group: str) -> bool:
    """Whether the group is one of the last that were given up."""
    return _GROUPS.was_given_up(group)


def give_up_here(group: str) -> None:
    """As ``give_up``, in this process's Spark; nothing where none runs."""
    context = active_context()
    if context is not None:
        give_up(context, group)


def wait_for_tasks(context: SparkContext, group: str, seconds: float = TASKS_END_SECONDS) -> bool:
    """Whether all tasks of the group have ended within ``seconds``. The tasks of a failed or canceled job end
    later than the job, and their Python processes still later."""
    end = time.monotonic() + seconds
    try:
        while has_tasks(context, group):
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK_SECONDS)
    except (JavaError, OSError):  # Spark itself has ended
        return False
    return True


def has_tasks(context: SparkContext, group: str) -> bool:
    """Whether any of the group's is under way."""
    wait_for_events(context, _TOLD_MILLIS)
    tracker = context.statusTracker()
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    stages = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
    return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)


def _keep_giving_up(context: SparkContext, group: str, ended: threading.Event) -> None:
    def repeat() -> None:
        with suppress(Exception):  # Spark itself has ended
            while not ended.wait(_AGAIN_SECONDS):
                _cancel(context, group)

    threading.Thread(target=repeat, name="tidemill-give-up", daemon=True).start()


def _cancel(context: SparkContext, group: str) -> None:
    cancel_group(context, group, "it was cancelled")


def _set(context: SparkContext, key: str, value: str | None) -> None:
    setter: Any = context.setLocalProperty
    setter(key, value)
