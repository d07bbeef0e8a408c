"""The checkpoint directory of one job: its identity, plan records, commit records, and who owns it.

Layout::

    job.json                   identity: digests of the plan's nodes and what they are
    lock, owners/<n>           held while a process runs the job (see ``ownership``)
    committed.json             there has been a first commit
    epochs/<n>.plan.json       intent: the offset ranges of epoch n and its processing time
    epochs/<n>.commit.json     fact: epoch n happened; offsets, manifests, sink tokens
    state/<operator>/...       runs and manifests (see tidemill.state)
    sources/<source>/...       what sources keep of their own (see connectors.api.RecordingSource)

Guarantee: a record file is either absent or whole, and is never replaced. Epoch n is committed iff
``<n>.commit.json`` exists. Records older than the last commit are removed once its sinks have published;
nothing that the last commit names is ever removed. Where records are missing that must have been there the
job is refused: from the beginning it would show everything twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from tidemill.connectors.api import Offset
from tidemill.errors import StateError
from tidemill.runtime.checkpoint.ownership import Ownership
from tidemill.runtime.checkpoint.records import (
    put_record,
    read_record,
    remove_record,
    remove_temporaries,
    sync_directory,
)
from tidemill.state.record import START_AGAIN, damaged
from tidemill.state.slices import Slice, Slices

T = TypeVar("T")
_JOB = "the job record"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """What a checkpoint belongs to. ``fingerprint`` is the whole job's digest, ``nodes`` what each node of
    its plans is by its digest, inputs first, ``operators`` how their state is laid out by operator id."""

    job_id: str
    fingerprint: str
    nodes: dict[str, str]
    operators: dict[str, str]
    name: str = ""


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
    """The fact. ``manifests``: operator id -> partition -> slices, each a manifest's path with the first key
    group and the one after the last; ``tokens``: sink id -> tokens; ``watermarks``: of sources and
    operators, in milliseconds, where there is event time."""

    epoch: int
    time: int
    offsets: dict[str, Offset]
    manifests: dict[str, dict[str, list[list[Any]]]]
    tokens: dict[str, list[str]]
    published: bool = field(default=False)
    watermarks: dict[str, int] = field(default_factory=dict)

    @property
    def slices(self) -> Slices:
        return {
            operator: {int(p): tuple(Slice(*part) for part in slices) for p, slices in parts.items()}
            for operator, parts in self.manifests.items()
        }


def recorded(slices: Slices) -> dict[str, dict[str, list[list[Any]]]]:
    """As a commit record has them."""
    return {
        operator: {str(p): [[s.manifest, s.first, s.stop] for s in part] for p, part in sorted(parts.items())}
        for operator, parts in slices.items()
    }


class CheckpointDirectory:
    """Records on a local or mounted file system; ``fault`` is called at every numbered commit step."""

    def __init__(self, root: Path, fault: Callable[[str], None] = lambda step: None) -> None:
        self.root = root
        self.fault = fault
        self._ownership: Ownership | None = None

    @property
    def state_root(self) -> Path:
        return self.root / "state"

    @property
    def run_id(self) -> str:
        """No other run of the job has it; state files bear it in their names."""
        return str(self._ownership.token) if self._ownership is not None else "0"

    @property
    def source_root(self) -> Path:
        """Where sources keep records of their own."""
        return self.root / "sources"

    @property
    def is_owned(self) -> bool:
        """Whether nobody else has taken the directory since: what lies there may be another job's now."""
        return self._ownership is not None and self._ownership.is_newest

    @property
    def _epochs(self) -> Path:
        return self.root / "epochs"

    def open(self, identity: JobIdentity) -> JobIdentity:
        """Takes the directory and checks or writes the identity; returns the stored one.

        Raises StateError: the directory is not writable, is in use, or belongs to another query.
        """
        try:
            self._make()
            self._ownership = Ownership.take(self.root)
            remove_temporaries(self.root, self._epochs)
            return self._identified(identity)
        except OSError as e:
            self.close()
            raise StateError(
                f"The checkpoint directory '{self.root}' cannot be used: {e.strerror or e}",
                hint="It must be a directory that this user can write to.",
            ) from e
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the directory back."""
        if self._ownership is not None:
            self._ownership.close()
            self._ownership = None

    def last_commit(self) -> EpochCommit | None:
        """The newest commit record; StateError if there must be one and there is none."""
        epochs = self._numbered(".commit.json")
        if not epochs:
            if (self.root / "committed.json").exists():
                raise StateError(
                    f"The commit record of the job in '{self.root}' is lost: epochs were committed, but "
                    f"'{self._epochs}' has none. From the beginning the job would write everything twice",
                    hint=START_AGAIN,
                )
            return None
        try:
            return self._commit(epochs[-1])
        except StateError as e:
            before = [n for n in epochs[:-1] if self._is_whole(n)]
            e.hint = f"The last whole epoch is {before[-1] if before else epochs[-1] - 1}. {e.hint}"
            raise

    def planned(self, epoch: int) -> EpochPlan | None:
        """The plan record of ``epoch``, if it was written before a crash."""
        return _record(EpochPlan, self._epochs / f"{epoch}.plan.json", "the plan record", epoch)

    def write_plan(self, plan: EpochPlan) -> None:
        self._put(self._epochs / f"{plan.epoch}.plan.json", asdict(plan))

    def remove_plan(self, epoch: int) -> None:
        remove_record(self._epochs / f"{epoch}.plan.json")

    def write_commit(self, commit: EpochCommit) -> None:
        """The epoch has happened when this returns; it must not have happened before."""
        self._put(self._epochs / f"{commit.epoch}.commit.json", asdict(commit))

    def begin_showing(self) -> None:
        """Notes that there has been a commit, before anybody sees what it did."""
        if not (self.root / "committed.json").exists():
            self._put(self.root / "committed.json", {})

    def forget_before(self, epoch: int) -> None:
        """Removes the records of epochs before ``epoch``."""
        for suffix in (".plan.json", ".commit.json"):
            for old in self._numbered(suffix):
                if old < epoch:
                    remove_record(self._epochs / f"{old}{suffix}")

    def _make(self) -> None:
        """Other users cannot look into what is made here: state holds the tables' rows."""
        new = not self.root.exists()
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self._epochs, self.state_root, self.source_root):
            folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(self.root)
        if new:
            sync_directory(self.root.parent)

    def _identified(self, wanted: JobIdentity) -> JobIdentity:
        stored = _record(JobIdentity, self.root / "job.json", _JOB)
        if stored is None:
            if self._numbered(".commit.json") or (self.root / "committed.json").exists():
                raise StateError(
                    f"The job record '{self.root / 'job.json'}' is lost: there are epochs, "
                    "but not whose they are",
                    hint=START_AGAIN,
                )
            self._put(self.root / "job.json", asdict(wanted))
            return wanted
        if (stored.fingerprint, stored.operators) != (wanted.fingerprint, wanted.operators):
            raise StateError(
                f"The checkpoint in '{self.root}' belongs to another query ({_difference(stored, wanted)})",
                hint="Use another checkpoint directory, or run the query that made this one.",
            )
        return stored

    def _commit(self, epoch: int) -> EpochCommit:
        record = _record(EpochCommit, self._epochs / f"{epoch}.commit.json", "the commit record", epoch)
        if record is None:
            raise StateError(f"Commit record {epoch} vanished from '{self._epochs}'", hint=START_AGAIN)
        return record

    def _is_whole(self, epoch: int) -> bool:
        with contextlib.suppress(StateError):
            return self._commit(epoch) is not None
        return False

    def _numbered(self, suffix: str) -> list[int]:
        names = (p.name[: -len(suffix)] for p in self._epochs.glob(f"*{suffix}"))
        return sorted(int(n) for n in names if n.isdigit())

    def _put(self, path: Path, fields: dict[str, Any]) -> None:
        if self._ownership is not None:
            self._ownership.check()
        put_record(path, fields)


def _record(kind: type[T], path: Path, what: str, epoch: int | None = None) -> T | None:
    fields = read_record(path, what)
    if fields is None:
        return None
    if epoch is not None and fields.get("epoch") != epoch:
        raise damaged(f"{what} '{path}'", f"it is that of epoch {fields.get('epoch')}")
    try:
        return kind(**fields)
    except TypeError as e:
        raise damaged(f"{what} '{path}'", str(e)) from e


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
