"""How the running job gets on: one line rewritten in place on a terminal, log lines elsewhere.

A terminal's line is there from the epoch's second second on, before anything is committed. Elsewhere an
epoch has a line of its own, but no job more than one in ten seconds; its resumption is always said, and so
is the last epoch so far: ten seconds after the line before it, when nothing more comes.
"""

from __future__ import annotations

import datetime as dt
import io
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TextIO

from tidemill.runtime.events import EpochBegun, JobEnded, JobEvent, JobFailed, JobResumed, PartitionsRead
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.stage_runs import SlowNode, SlowTask
from tidemill.session.context import SessionContext

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_DAY, _MONTH_DAYS, _YEAR_DAYS = 86_400, 30.44, 365.25
_TICK_SECONDS = 0.5
_QUIET_SECONDS = 1.0
LOG_SECONDS = 10.0


class Progress(Protocol):
    """Told of events by job threads; ``clear`` before other output, ``close`` when no more is wanted.
    ``stream``: where it writes. Between ``hold`` and ``release`` it writes nothing."""

    @property
    def stream(self) -> TextIO: ...

    def event(self, event: JobEvent) -> None: ...

    def show(self, progress: EpochProgress) -> None: ...

    def clear(self) -> None: ...

    def beside(self, stream: TextIO, text: str) -> int:
        """Writes other output, ``text`` to ``stream``."""
        ...

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


def progress_on(stream: TextIO, context: SessionContext) -> Progress:
    """What fits ``stream``, hearing of the session's jobs."""
    progress: Progress = ProgressLine(stream) if stream.isatty() else ProgressLog(stream)
    context.on_progress = progress.show
    context.on_event = progress.event
    return progress


class Ticker:
    """Calls ``tick`` every half second, in a thread of its own, from ``start`` to ``close``."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidemill-progress", daemon=True)

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def start(self) -> None:
        """Once: further calls change nothing. The caller holds a lock."""
        if self._thread.ident is None and not self.closed:
            self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(_TICK_SECONDS):
            self._tick()


def _said(event: JobEvent) -> str:
    """'' of the beginning of an epoch."""
    if isinstance(event, JobResumed):
        return f"resumed after epoch {event.epoch}"
    if isinstance(event, JobFailed):
        what = event.error.partition("\n")[0]
        again = "not started again" if event.wait is None else f"started again in {event.wait:.1f} s"
        return f"failed: {what}; {again}"
    if isinstance(event, JobEnded):
        return "; ".join([*map(slow_task_line, event.slow), *map(slow_node_line, event.slow_nodes)])
    return partitions_line(event) if isinstance(event, PartitionsRead) else ""


class ProgressLine:
    """One line on a terminal, no wider than it: ``columns`` says how wide that is. It stays away while other
    output is in the middle of a line."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        columns: Callable[[], int] = lambda: shutil.get_terminal_size().columns,
    ) -> None:
        self.stream = stream
        self._columns = columns
        self._within = self._holds = False
        self._clock = clock
        self._lock = threading.RLock()
        self._rows = 0
        self._shown = False
        self._running: EpochBegun | None = None
        self._since = 0.0
        self._ticker = Ticker(self.tick)

    def event(self, event: JobEvent) -> None:
        with self._lock:
            text = _said(event)
            if text:
                self._write(text)
            if not isinstance(event, EpochBegun):
                return
            self._running, self._since = event, self._clock()
            self._ticker.start()

    def show(self, progress: EpochProgress) -> None:
        with self._lock:
            self._running = None
            self._rows += progress.rows_in
            self._write(line(progress, self._rows))

    def clear(self) -> None:
        with self._lock:
            if self._shown:
                self.stream.write("\r\x1b[2K")
                self.stream.flush()
                self._shown = False

    def beside(self, stream: TextIO, text: str) -> int:
        with self._lock:
            self.clear()
            if text:
                self._within = not text.endswith("\n")
            return stream.write(text)

    def hold(self) -> None:
        with self._lock:
            self.clear()
            self._holds = True

    def release(self) -> None:
        with self._lock:
            self._holds = False

    def close(self) -> None:
        self._ticker.close()
        self.clear()

    def tick(self) -> None:
        """Shows the epoch under way, unless it has only begun."""
        running, since = self._running, self._since
        seconds = self._clock() - since
        if running is None or seconds < _QUIET_SECONDS:
            return
        text = running_line(running, self._rows, seconds)
        with self._lock:
            if self._running is running:
                self._write(text)

    def _write(self, text: str) -> None:
        if not (self._ticker.closed or self._within or self._holds):
            self.stream.write("\r\x1b[2K" + text[: self._columns() - 1])
            self.stream.flush()
            self._shown = True


class ProgressLog:
    """Lines in a log, with the time in UTC. Those that are held come when they are let go."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.time) -> None:
        self.stream = stream
        self._holds = False
        self._waiting: list[str] = []
        self._clock = clock
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._said: dict[str, float] = {}
        self._held: dict[str, EpochProgress] = {}
        self._ticker = Ticker(self.tick)

    def event(self, event: JobEvent) -> None:
        text = _said(event)
        if text:
            with self._lock:
                self._say(event.job_id, text)

    def show(self, progress: EpochProgress) -> None:
        with self._lock:
            job = progress.job_id
            self._rows[job] = self._rows.get(job, 0) + progress.rows_in
            self._held[job] = progress
            self._ticker.start()
        self.tick()

    def tick(self) -> None:
        """Says what has waited long enough."""
        with self._lock:
            for job in [] if self._holds else list(self._held):
                if self._clock() - self._said.get(job, -LOG_SECONDS) >= LOG_SECONDS:
                    self._said[job] = self._clock()
                    self._say_held(job)

    def clear(self) -> None:
        """Log lines stay."""

    def beside(self, stream: TextIO, text: str) -> int:
        return stream.write(text)

    def hold(self) -> None:
        with self._lock:
            self._holds = True

    def release(self) -> None:
        with self._lock:
            self._holds = False
            for text in self._waiting:
                self.stream.write(text)
            self._waiting.clear()
            self.stream.flush()
        self.tick()

    def close(self) -> None:
        self._ticker.close()
        with self._lock:
            for job in list(self._held):
                self._say_held(job)

    def _say_held(self, job: str) -> None:
        progress = self._held.pop(job)
        self._say(job, line(progress, self._rows[job]))

    def _say(self, job: str, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        if self._holds:
            self._waiting.append(f"{stamp} job {job} {text}\n")
            return
        self.stream.write(f"{stamp} job {job} {text}\n")
        self.stream.flush()


class Apart(io.TextIOBase):
    """A stream beside a progress line: the line goes before anything is written."""

    def __init__(self, stream: TextIO, progress: Progress) -> None:
        self._wrapped = stream
        self._progress = progress

    def write(self, text: str) -> int:
        return self._progress.beside(self._wrapped, text)

    def flush(self) -> None:
        self._wrapped.flush()

    def isatty(self) -> bool:
        return self._wrapped.isatty()

    def fileno(self) -> int:
        return self._wrapped.fileno()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Nothing is said of jobs where it would come to lie among what is written: in the same file, or on a
        terminal that what is piped may be for. A terminal that has both gets a line that goes again."""
        if not _mixed(self._wrapped, self._progress.stream):
            yield
            return
        self._progress.hold()
        try:
            yield
        finally:
            self._progress.release()


def undisturbed(out: TextIO) -> AbstractContextManager[None]:
    """For a table that is written to ``out``."""
    return out.undisturbed() if isinstance(out, Apart) else nullcontext()


def _mixed(out: TextIO, errors: TextIO) -> bool:
    if out.isatty():
        return False
    try:
        one, other = os.fstat(out.fileno()), os.fstat(errors.fileno())
    except OSError:  # no files: what a test or a program has put in their place
        return False
    return os.path.samestat(one, other) or (stat.S_ISFIFO(one.st_mode) and errors.isatty())


def line(progress: EpochProgress, total: int) -> str:
    """``epoch 12 | 1,200,000 rows in (99,812/s) | 10 out | state 1,000 rows, 24.0 KiB | lag 0.4 s``."""
    return (
        f"epoch {progress.epoch} | {total:,} rows in ({progress.rate:,.0f}/s) | {progress.rows_out:,} out | "
        + (f"{progress.late:,} late | " if progress.late else "")
        + _event_time(progress)
        + f"state {progress.state_rows:,} rows, {size_text(progress.state_bytes)} | "
        + f"lag {progress.seconds:.1f} s"
    )


def _event_time(progress: EpochProgress) -> str:
    """``watermark 2024-05-01 10:00:06, 2.4 s behind | ``."""
    if progress.watermark is None or progress.behind is None:
        return ""
    reached = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=progress.watermark)
    word = "behind" if progress.behind >= 0 else "ahead"
    return f"watermark {reached:%Y-%m-%d %H:%M:%S}, {span_text(abs(progress.behind))} {word} | "


def partitions_line(event: PartitionsRead) -> str:
    """``read 3 of 60 partitions of c.d.facts``."""
    return f"read {event.read:,} of {event.of:,} partitions of {event.table}"


def slow_task_line(task: SlowTask) -> str:
    """``task 7 of stage 4 on host-3 was slow: 12.0 s for 9.8 MiB, the median task 1.1 s for 10.0 MiB``."""
    what = "had more to read" if task.more else "was slow" if task.is_measured else "took long"
    if task.copy:
        what = "is a second attempt that ended first" if task.status == "SUCCESS" else "is a second attempt"
    begun = f"task {task.task} of stage {task.stage} on {task.host} {what}: {task.seconds:.1f} s"
    if not task.is_measured:
        return f"{begun}, the median task {task.median_seconds:.1f} s; Spark did not see what they read"
    return (
        f"{begun} for {size_text(task.bytes)}, the median task {task.median_seconds:.1f} s for "
        f"{size_text(task.median_bytes)}"
    )


def slow_node_line(node: SlowNode) -> str:
    """``host-3 got no tasks from 10:00:06 UTC for 60 s: a copy of its task 7 of stage 4 came first``."""
    begun = dt.datetime.fromtimestamp(node.begun, dt.UTC)
    return (
        f"{node.host} got no tasks from {begun:%H:%M:%S} UTC for {node.ended - node.begun:.0f} s: "
        f"a copy of its task {node.task} of stage {node.stage} came first"
    )


def running_line(epoch: EpochBegun, before: int, seconds: float) -> str:
    """``epoch 1 | 12 of 40 tasks | 0 rows in so far | 7 s``."""
    now = epoch.so_far()
    parts = [f"epoch {epoch.epoch}"]
    if now.tasks:
        parts.append(f"{now.tasks_done:,} of {now.tasks:,} tasks")
    return " | ".join([*parts, f"{before + now.rows:,} rows in so far", f"{seconds:.0f} s"])


def span_text(seconds: float) -> str:
    """``2.4 s``, ``3 min 20 s``, ``2 h 5 min``, ``12 days``, ``5 months``, ``16 years``."""
    days = seconds / _DAY
    if days >= 2 * _YEAR_DAYS:
        return f"{days / _YEAR_DAYS:.0f} years"
    if days >= 2 * _MONTH_DAYS:
        return f"{days / _MONTH_DAYS:.0f} months"
    if days >= 2:
        return f"{days:.0f} days"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, left = divmod(round(seconds), 60)
    return f"{minutes} min {left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size_text(count: float) -> str:
    """``1.5 KiB``."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {_UNITS[-1]}"
