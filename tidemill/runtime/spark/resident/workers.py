"""The Spark job whose Python workers stay, in an application within one machine.

An application has one such job at most, whichever of its streaming jobs run here. A few of their epochs run
at a time, and the others wait their turn: while the driver plans one epoch, the workers run tasks of others.
The job holds a slot per worker, and it gives all of them back

- as soon as another Spark job wants to run, at the end of the epochs under way: it begins again a while after
  that job has ended;
- for an epoch of its streaming jobs that is a Spark job: it begins again when no such epoch runs;
- after ``IDLE_SECONDS`` without an epoch;
- when no streaming job is left that would use it;
- when a worker is lost, or an epoch fails.

The job is in barrier mode: it gets all of its slots at once, and holds none while it waits for the others.
The socket's file is there while workers start, in the folder that the application's next start removes.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from uuid import uuid4

from pyspark import SparkContext

from tidemill.runtime.spark.epoch.programs import Failed
from tidemill.runtime.spark.job_groups import group_of_this_thread
from tidemill.runtime.spark.pools import in_turn
from tidemill.runtime.spark.resident.connection import Answer, Question
from tidemill.runtime.spark.resident.turns import Turns
from tidemill.runtime.spark.resident.worker import serve
from tidemill.runtime.spark.settings import SOCKET_FOLDER
from tidemill.spark_internals.errors import JavaError
from tidemill.spark_internals.scheduler import cancel_group, slots, wait_for_events

IDLE_SECONDS = 2.0
"""A job whose epochs come more seldom does not notice that its workers start anew, which takes a fifth of a
second; other applications of the machine get the memory."""
PAUSE_SECONDS = 1.0
"""After another job wanted the slots: its application may send one job after the other."""
START_SECONDS = 30.0
TURN_SECONDS = 1.0
"""How long a start waits for epochs of other streaming jobs that are Spark jobs. No other such epoch begins
meanwhile. Without the wait, several jobs would be Spark jobs for ever, because one of them always is."""
SOCKET = "resident-"
"""What the names of sockets and of groups of Spark jobs begin with."""
END_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_WATCH_SECONDS = 0.05
_EVENTS_MILLIS = 200
_LOGGER = logging.getLogger("tidemill")


class Lost(Exception):
    """A worker has ended, or was ended."""


class GivenUp(Exception):
    """The workers end, for no fault of the epoch: an epoch of another job has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``program`` and ``given`` as in ``Question``."""

    program: bytes
    given: bytes


@dataclass(slots=True, kw_only=True)
class _Job:
    """The Spark job, and the connections to its workers. Several threads may run tasks at a time: each takes
    a connection for one question and its answer."""

    group: str
    connections: list[Connection]
    processes: tuple[int, ...]
    thread: threading.Thread
    used: float = field(default_factory=time.monotonic)
    is_broken: bool = False
    """A question may still be answered, to nobody: the workers must end."""
    _free: deque[Connection] = field(init=False)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._free, self._turns = deque(self.connections), Turns(len(self.connections))

    def run(self, tasks: Sequence[Task], given_up: Callable[[], bool]) -> list[Answer]:
        """The answers in the order of the tasks. Raises Lost, Failed or GivenUp. If a question is left
        without an answer, the job is broken, and ends after the epochs under way."""
        left = deque(enumerate(tasks))
        answers: dict[int, Answer] = {}
        asked: dict[Connection, int] = {}
        try:
            while left or asked:
                while left and (free := self._taken(given_up, waits=not asked)):
                    number, task = left.popleft()
                    asked[free] = number
                    _ask(free, number, task)
                for ready in wait(list(asked), timeout=_LOOK_SECONDS):
                    assert isinstance(ready, Connection)
                    answers[asked[ready]] = answer_of(ready)
                    del asked[ready]
                    self._give_back(ready)
                if asked and given_up():
                    raise Lost("the job was given up")
        except BaseException:
            self.is_broken = self.is_broken or bool(asked)
            for connection in asked:
                self._give_back(connection)
            raise
        return [answers[number] for number in range(len(tasks))]

    def _taken(self, given_up: Callable[[], bool], *, waits: bool) -> Connection | None:
        """A free connection; None if none is free and the caller does not wait."""
        if waits:
            if not self._turns.take(given_up):
                raise Lost("the job was given up")
        elif not self._turns.take_now():
            return None
        if self.is_broken:
            self._turns.give_back()
            raise GivenUp("an epoch of another job has failed")
        return self._free.popleft()

    def _give_back(self, connection: Connection) -> None:
        self._free.append(connection)
        self._turns.give_back()

    def end(self, context: SparkContext) -> None:
        """Returns when the slots are free, or after a while."""
        for connection in self.connections:
            connection.close()
        # A worker in the middle of a task does not look at its connection.
        self.thread.join(_LOOK_SECONDS * 10)
        if self.thread.is_alive():
            with suppress(JavaError, OSError):  # Spark itself may have ended
                cancel_group(context, self.group, "its workers are not needed any more")
            self.thread.join(END_SECONDS)


def _ask(connection: Connection, number: int, task: Task) -> None:
    try:
        Question(number, task.program, task.given).send(connection)
    except OSError as e:
        raise Lost(f"a worker has ended: {e}") from e


def answer_of(connection: Connection) -> Answer:
    """The worker's answer. Raises Lost or Failed."""
    try:
        answer = Answer.receive(connection)
    except (EOFError, OSError) as e:
        raise Lost("a worker has ended") from e
    if answer.failure:
        raise Failed(answer.failure)
    return answer


@dataclass(slots=True)
class ResidentWorkers:
    """Those of one application."""

    context: SparkContext
    _users: int = 0
    _job: _Job | None = None
    _paused: float = 0.0
    _beside: list[str] = field(default_factory=list)
    """Groups of the streaming jobs whose epochs are Spark jobs at the moment."""
    _own_jobs: set[int] = field(default_factory=set)
    """Spark's numbers of the workers' jobs, as far as it was asked for them: each look costs milliseconds."""
    _counting: threading.Lock = field(default_factory=threading.Lock)
    _turns: Turns = field(default_factory=Turns)
    """Epochs take them together, the start and the end of the workers alone."""

    @property
    def are_there(self) -> bool:
        """Whether they hold slots."""
        return self._job is not None

    @property
    def processes(self) -> tuple[int, ...]:
        """Their ids."""
        job = self._job
        return () if job is None else job.processes

    def begin(self) -> None:
        """Starts the workers ahead of the first epoch, in a thread."""
        threading.Thread(target=self._begin, name="tidemill-resident-start", daemon=True).start()

    def _begin(self) -> None:
        with suppress(Lost, JavaError, OSError), self._turns.taken():  # the first epoch tries again
            if self._job is None:
                self._started(slots(self.context), lambda: False)

    @contextmanager
    def used(self) -> Iterator[None]:
        """While a streaming job runs that may use the workers."""
        with self._counting:
            self._users += 1
        try:
            yield
        finally:
            with self._counting:
                self._users -= 1
            if not self._users:
                with self._turns.taken():
                    if not self._users:
                        self._end()

    @contextmanager
    def beside(self, ends: Callable[[], bool]) -> Iterator[None]:
        """While this thread runs an epoch as a Spark job, which needs the slots. ``ends`` as in ``lent``."""
        group = group_of_this_thread()
        self._beside.append(group)
        try:
            # Workers that start meanwhile see that the slots are wanted.
            if self._job is not None and self._turns.take(ends, alone=True):
                try:
                    if self._job is not None:
                        self._give_way()
                finally:
                    self._turns.give_back()
            yield
        finally:
            self._beside.remove(group)

    @contextmanager
    def lent(self, width: int, ends: Callable[[], bool]) -> Iterator[_Job | None]:
        """The workers for one epoch, at most ``width`` if they start now; None if others need the slots, or
        if the streaming job ``ends`` before they are there. Lost if they do not start."""
        if not self._taken(width, ends):
            yield None
            return
        job = self._job
        assert job is not None
        try:
            yield job
        finally:
            job.used = time.monotonic()
            self._turns.give_back()

    def _taken(self, width: int, ends: Callable[[], bool]) -> bool:
        """Takes a turn beside other epochs; False if there are no workers."""
        while self._turns.take(ends):
            if self._job is not None and not self._job.is_broken:
                return True
            self._turns.give_back()
            if not self._turns.take(ends, alone=True):
                return False
            try:
                if self._job is not None and self._job.is_broken:
                    self._end()
                if self._job is None and self._started(width, ends) is None:
                    return False
            finally:
                self._turns.give_back()
        return False

    def _started(self, width: int, ends: Callable[[], bool]) -> _Job | None:
        if time.monotonic() < self._paused:
            return None
        self._wait_for_epochs(ends)
        wait_for_events(self.context, _EVENTS_MILLIS)
        if self._is_wanted() or ends():
            self._give_way()
            return None
        interrupted = partial(self._is_interrupted, ends)
        self._job = _start(self.context, min(width, slots(self.context)), interrupted)
        if self._job is None:
            self._paused = time.monotonic() + PAUSE_SECONDS
            return None
        # The driver plans and commits one epoch while the workers are busy with others.
        self._turns.most = len(self._job.connections) + 1
        watch = threading.Thread(target=self._watch, args=(self._job,), name="tidemill-resident", daemon=True)
        watch.start()
        return self._job

    def _wait_for_epochs(self, ends: Callable[[], bool]) -> None:
        """Waits while the only Spark jobs are epochs of streaming jobs that use the workers."""
        end = time.monotonic() + TURN_SECONDS
        while self._beside and not ends() and time.monotonic() < end:
            if self._active_jobs() - self._jobs_of(self._beside):
                return
            time.sleep(_LOOK_SECONDS)

    def _is_interrupted(self, ends: Callable[[], bool], group: str) -> bool:
        """Whether workers that start as ``group`` are not needed any more, or have to give way."""
        return ends() or self._is_wanted(group)

    def _watch(self, job: _Job) -> None:
        """Gives the slots back if nobody uses them, somebody else wants them, or a task has failed."""
        with suppress(JavaError, OSError):  # Spark itself has ended
            while job is self._job:
                time.sleep(_WATCH_SECONDS)
                if job.is_broken or self._is_wanted(job.group):
                    with self._turns.taken(first=True):
                        if job is self._job:
                            self._end() if job.is_broken else self._give_way()
                elif time.monotonic() > job.used + IDLE_SECONDS and self._turns.take_now(alone=True):
                    try:
                        if job is self._job:
                            self._end()
                    finally:
                        self._turns.give_back()

    def _is_wanted(self, *groups: str) -> bool:
        """Whether somebody needs the slots: an epoch, or a Spark job of none of the ``groups``, which are of
        the workers."""
        if self._beside:
            return True
        others = self._active_jobs() - self._own_jobs
        if others:
            self._own_jobs = self._jobs_of(groups)
            others -= self._own_jobs
        return bool(others)

    def _active_jobs(self) -> set[int]:
        return set(self.context.statusTracker().getActiveJobsIds())

    def _jobs_of(self, groups: Sequence[str]) -> set[int]:
        tracker = self.context.statusTracker()
        return {number for group in groups for number in tracker.getJobIdsForGroup(group)}

    def _give_way(self) -> None:
        self._paused = time.monotonic() + PAUSE_SECONDS
        self._end()

    def _end(self) -> None:
        if self._job is not None:
            job, self._job = self._job, None
            job.end(self.context)


_OF: dict[str, ResidentWorkers] = {}
_OF_LOCK = threading.Lock()


def resident_workers(context: SparkContext) -> ResidentWorkers:
    """Those of the application, which start with the first epoch, or before it (``begin``)."""
    with _OF_LOCK:
        found = _OF.get(context.applicationId)
        if found is None or found.context is not context:
            _OF.clear()  # a process has one application at a time
            found = _OF[context.applicationId] = ResidentWorkers(context)
        return found


def _start(context: SparkContext, width: int, is_interrupted: Callable[[str], bool]) -> _Job | None:
    """None if it ``is_interrupted``, told its group, before its workers come; Lost if they do not come."""
    folder = context.getConf().get(SOCKET_FOLDER, "") or ""
    group = f"{SOCKET}{uuid4().hex}"
    path = os.path.join(folder, group)
    connections: list[Connection] = []
    processes: list[int] = []
    interrupted = False
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        try:
            listening.listen(width)
            listening.settimeout(_LOOK_SECONDS)
            thread = threading.Thread(
                target=_run, args=(context, group, path, width), name="tidemill-resident-job", daemon=True
            )
            thread.start()
            end = time.monotonic() + START_SECONDS
            while len(connections) < width and time.monotonic() < end and thread.is_alive():
                interrupted = is_interrupted(group)
                if interrupted:
                    break
                with suppress(EOFError, OSError):  # nobody came so far, or somebody has ended again
                    connections.append(Connection(listening.accept()[0].detach()))
                    processes.append(connections[-1].recv())
        finally:
            os.unlink(path)
    job = _Job(group=group, connections=connections, processes=tuple(processes), thread=thread)
    if len(connections) == width:
        return job
    job.end(context)
    if interrupted:
        return None
    raise Lost("workers have not started")


def _run(context: SparkContext, group: str, path: str, width: int) -> None:
    try:
        context.setJobGroup(group, "Resident workers of epochs", interruptOnCancel=True)
        with in_turn(context):
            context.parallelize(range(width), width).barrier().mapPartitions(partial(serve, path)).count()
    except Exception as e:  # the driver sees that the workers are gone
        _LOGGER.debug("resident workers have ended: %s", e)
