"""The checkpoint directory of one job: its identity, plan records, commit records, and the lock.

Layout::

    job.json                   identity: digests of the plan's nodes and what they are, parallelism
    lock                       held (flock) while a process runs the job
    epochs/<n>.plan.json       intent: the offset ranges of epoch n and its processing time
    epochs/<n>.commit.json     fact: epoch n happened; offsets, manifests, sink tokens
    state/<operator>/...       runs and manifests (see tidemill.state)

Guarantee: a record file is either absent or whole (temp file, fsync, rename). Epoch n is committed
iff ``<n>.commit.json`` exists. Records older than the last commit are removed once its sinks have
published; nothing that the last commit names is ever removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

FORMAT_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """What a checkpoint belongs to. ``fingerprint`` is the whole job's digest, ``nodes`` what each node of
    its plans is by its digest, inputs first, ``operators`` how their state is laid out by operator id."""

    job_id: str
    fingerprint: str
    parallelism: int
    nodes: dict[str, str]
    operators: dict[str, str]
    name: str = ""
    version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """The intent: per source the range (start, end]; ``time`` is the epoch's clock in milliseconds; ``ended``
    are the sources that give no row after this epoch."""

    epoch: int
    time: int
    start: dict[str, Offset | None]
    end: dict[str, Offset]
    ended: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCommit:
    """The fact. ``manifests``: operator id -> partition -> manifest path; ``tokens``: sink id -> tokens;
    ``watermarks``: of sources and operators, in milliseconds, where there is event time."""

    epoch: int
    time: int
    offsets: dict[str, Offset]
    manifests: dict[str, dict[str, str]]
    tokens: dict[str, list[str]]
    published: bool = field(default=False)
    watermarks: dict[str, int] = field(default_factory=dict)


class CheckpointDirectory:
    """Records on a local or mounted file system; ``fault`` is called at every numbered commit step."""

    def __init__(self, root: Path, fault: Callable[[str], None] = lambda step: None) -> None:
        self.root = root
        self.fault = fault
        self._lock: TextIO | None = None

    @property
    def state_root(self) -> Path:
        return self.root / "state"

    @property
    def _epochs(self) -> Path:
        return self.root / "epochs"

    def open(self, identity: JobIdentity) -> JobIdentity:
        """Takes the lock and checks or writes the identity; returns the stored one.

        Raises StateError: the directory is not writable, is in use, or belongs to another query.
        """
        try:
            self._epochs.mkdir(parents=True, exist_ok=True)
            self.state_root.mkdir(exist_ok=True)
            self._take_lock()
            stored = self._read(self.root / "job.json")
            if stored is None:
                self._write(self.root / "job.json", asdict(identity))
                return identity
        except StateError:
            self.close()
            raise
        except OSError as e:
            self.close()
            raise StateError(
                f"The checkpoint directory '{self.root}' cannot be used: {e.strerror or e}",
                hint="It must be a directory that this user can write to.",
            ) from e
        return self._checked(JobIdentity(**stored), identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def last_commit(self) -> EpochCommit | None:
        """The newest commit record."""
        epochs = self._numbered(".commit.json")
        if not epochs:
            return None
        record = self._read(self._epochs / f"{epochs[-1]}.commit.json")
        if record is None:
            raise StateError(f"Commit record {epochs[-1]} vanished from '{self._epochs}'")
        return EpochCommit(**record)

    def planned(self, epoch: int) -> EpochPlan | None:
        """The plan record of ``epoch``, if it was written before a crash."""
        record = self._read(self._epochs / f"{epoch}.plan.json")
        return None if record is None else EpochPlan(**record)

    def write_plan(self, plan: EpochPlan) -> None:
        self._write(self._epochs / f"{plan.epoch}.plan.json", asdict(plan))

    def remove_plan(self, epoch: int) -> None:
        (self._epochs / f"{epoch}.plan.json").unlink(missing_ok=True)

    def write_commit(self, commit: EpochCommit) -> None:
        self._write(self._epochs / f"{commit.epoch}.commit.json", asdict(commit))

    def forget_before(self, epoch: int) -> None:
        """Removes the records of epochs before ``epoch``."""
        for suffix in (".plan.json", ".commit.json"):
            for old in self._numbered(suffix):
                if old < epoch:
                    (self._epochs / f"{old}{suffix}").unlink(missing_ok=True)

    def _numbered(self, suffix: str) -> list[int]:
        names = (p.name[: -len(suffix)] for p in self._epochs.glob(f"*{suffix}"))
        return sorted(int(n) for n in names if n.isdigit())

    def _take_lock(self) -> None:
        lock = open(self.root / "lock", "a", encoding="utf-8")  # noqa: SIM115 - held for the job's life
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            lock.close()
            if e.errno in (errno.EAGAIN, errno.EACCES):
                raise StateError(
                    f"The checkpoint directory '{self.root}' is in use by another running job",
                    hint="Stop that job first, or give this one a directory of its own.",
                ) from e
            raise
        self._lock = lock

    def _checked(self, stored: JobIdentity, wanted: JobIdentity) -> JobIdentity:
        if stored.version != FORMAT_VERSION:
            self.close()
            raise StateError(
                f"The checkpoint in '{self.root}' has format version {stored.version}, "
                f"this Tidemill reads version {FORMAT_VERSION}"
            )
        if (stored.fingerprint, stored.operators) != (wanted.fingerprint, wanted.operators):
            self.close()
            raise StateError(
                f"The checkpoint in '{self.root}' belongs to another query ({_difference(stored, wanted)})",
                hint="Use another checkpoint directory, or run the query that made this one.",
            )
        return stored

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            record: dict[str, Any] = json.loads(text)
        except ValueError as e:
            raise StateError(f"The record '{path}' is damaged: {e}") from e
        return record

    def _write(self, path: Path, record: dict[str, Any]) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with open(temporary, "w", encoding="utf-8") as f:
                json.dump(record, f)
                f.flush()
                os.fsync(f.fileno())
            os.replace(temporary, path)
            _sync_directory(path.parent)
        except OSError as e:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise StateError(
                f"Cannot write '{path}': {e.strerror or e}",
                hint="Nothing was committed; the job resumes from its last epoch when the cause is gone.",
            ) from e


def _difference(stored: JobIdentity, wanted: JobIdentity) -> str:
    """Names the lowest node that differs: all above it differ with it."""
    gone = next((text for key, text in stored.nodes.items() if key not in wanted.nodes), "")
    new = next((text for key, text in wanted.nodes.items() if key not in stored.nodes), "")
    if gone and gone == new:
        return f"its {gone} has other options or types than this query's"
    if gone and new:
        return f"it has {gone} where this query has {new}"
    if gone or new:
        return f"it has {gone}, which this query lacks" if gone else f"it lacks {new}"
    changed = [key for key in stored.operators if stored.operators[key] != wanted.operators.get(key)]
    return f"the state of {', '.join(changed)} is laid out in another way" if changed else "its parts repeat"


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
