"""A job's handle: it runs in a thread of its own, and is stopped, given up or kept as a savepoint."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from tidemill.errors import NOTHING_COMMITTED, NOTHING_KEPT, InternalError, TidemillError, ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import MARK, Snapshot
from tidemill.runtime.epoch_loop import StreamingJob
from tidemill.runtime.events import JobEvent, SavepointWritten, unheard
from tidemill.runtime.job.recording import Recording
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.snapshots import Held
from tidemill.runtime.spark.job_groups import give_up, grouped


@dataclass(slots=True, kw_only=True)
class RunningJob:
    """A job's handle. ``wait`` raises the error of a failed job."""

    job_id: str
    name: str
    _job: StreamingJob
    _identity: JobIdentity
    _cleanup: Callable[[], None]
    _thread: threading.Thread | None = None
    _error: BaseException | None = None
    _done: threading.Event = field(default_factory=threading.Event)
    _group: str = field(default_factory=lambda: uuid.uuid4().hex)
    _aborted: bool = False
    _savepoint: Storage | None = None
    _recording: Recording | None = None
    _tell: Callable[[JobEvent], None] = unheard
    _end: str = ""
    """How it ended: who stops it afterwards changes nothing."""

    def is_running(self) -> bool:
        return not self._done.is_set()

    @property
    def directory(self) -> str:
        """Where its state lies; '' if that goes with the job."""
        return self._job.checkpoint.root.full_path("") if self._job.settings.resumable else ""

    @property
    def status(self) -> str:
        """RUNNING, FINISHED, CANCELED or FAILED, as in Flink."""
        return "RUNNING" if self.is_running() else self._end

    def _how_it_ended(self) -> str:
        if self._error is not None:
            return "FAILED"
        if self._savepoint is not None and not self._aborted:
            return "FINISHED"  # stopped as it was to be: Flink says so, too
        return "CANCELED" if self._job.stopping.is_set() else "FINISHED"

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the job has ended. Raises the job's error, or TimeoutError after ``timeout``
        seconds."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"job '{self.name}' still runs after {timeout} seconds")
        if self._error is not None:
            raise self._error

    def listen(self, listener: Callable[[EpochProgress], None]) -> None:
        """``listener`` hears of each epoch from now on, in the job's thread."""
        told = self._job.on_progress

        def tell(progress: EpochProgress) -> None:
            told(progress)
            listener(progress)

        self._job.on_progress = tell

    def stop(self) -> None:
        """Asks the job to stop after its current epoch, and returns at once."""
        self._job.stopping.set()

    def cancel(self) -> None:
        """Asks the job to stop after its current epoch, and returns when it has stopped."""
        self.stop()
        self._done.wait()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Stops the job after its current epoch and writes a savepoint; gives the savepoint's path. With
        ``drain``, open windows emit their results first. Raises the error of a failed job, and
        ValidationError for an ended job."""
        self._check_running()
        target = self._place(f"{directory.rstrip('/')}/{self._savepoint_name()}")
        self._job.draining, self._savepoint = drain, target
        self.stop()
        self.wait()
        if target.stat(MARK) is None:
            raise ValidationError(f"Job {self.job_id} had ended before its savepoint: it is {self.status}.")
        return target.full_path("")

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        """Writes a savepoint at ``path``, or below ``directory``, while the job goes on; where it lies. Waits
        for the epoch under way. StateError where it cannot be written; ValidationError for a job that has
        ended."""
        self._check_running()
        target = self._place(path or f"{directory.rstrip('/')}/{self._savepoint_name()}")
        held = self._job.requests.ask()
        try:
            self._write(held.commit, target)
        finally:
            held.release()
        return target.full_path("")

    def rest(self) -> Held:
        """The job's last epoch, after which the job waits until ``rested`` of it is set; its files stay until
        its ``release``. ValidationError for a job that has ended."""
        self._check_running()
        return self._job.requests.ask(rests=True)

    def _check_running(self) -> None:
        if not self.is_running():
            raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")

    def _savepoint_name(self) -> str:
        return f"savepoint-{self.job_id[:6]}-{uuid.uuid4().hex[:12]}"

    def _place(self, location: str) -> Storage:
        return Storage(location, self._job.checkpoint.root.settings)

    def _write(self, commit: EpochCommit | None, target: Storage) -> None:
        Snapshot(identity=self._identity, commit=commit, checkpoint=self._job.checkpoint.root).write(target)
        self._tell(SavepointWritten(job_id=self.job_id, path=target.full_path(""), at=time.time()))

    def abort(self) -> None:
        """Aborts the current epoch, of which nothing is kept, and stops; returns at once."""
        self._aborted = True
        self.stop()
        give_up(self._job.spark.sparkContext, self._group)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"tidemill-job-{self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            context = self._job.spark.sparkContext
            with self._recorded(), grouped(context, self._group, self.name, in_parts=True):
                self._job.run()
            if self._savepoint is not None:
                self._write(self._job.last_commit, self._savepoint)
        except TidemillError as e:
            if not self._job.settings.resumable:
                e.hint = e.hint.replace(NOTHING_COMMITTED, NOTHING_KEPT)
            self._error = e
        except Exception as e:
            self._error = InternalError(f"{type(e).__name__}: {e}")
            self._error.__cause__ = e
        except BaseException as e:
            # Not an error of the job but the end of its thread: whoever waits must learn of it.
            self._error = e
        finally:
            if self._aborted and isinstance(self._error, Exception):
                self._error = None  # what failed is what was given up
            self._end = self._how_it_ended()
            self._job.checkpoint.close()
            self._cleanup()
            if self._recording is not None:  # before anybody learns of the end otherwise
                self._recording.end(self._end, "" if self._error is None else str(self._error))
            self._done.set()

    def _recorded(self) -> AbstractContextManager[None]:
        return nullcontext() if self._recording is None else self._recording.running()
