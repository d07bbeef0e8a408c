"""Savepoints: what a job needs to go on after one of its epochs, in a directory that stands on its own.

Layout::

    savepoint.json             written last: whose it is, its epoch, all files with their checksums
    job.json, committed.json   as in a checkpoint directory
    epochs/<n>.commit.json     the epoch; its output was published before: it names no tokens
    state/..., sources/...     what the commit record names, and what sources keep
    claimed.json               a job has taken the savepoint for itself

Guarantee: nothing in it points outside, so that it may be moved and copied. Without ``savepoint.json`` it was
never finished, and nobody takes it up; whoever does looks at length and checksum of every file before.
The checkpoint directory of a job that has ended has the same records and can be taken up, too. Savepoints of
format 3 have a ``savepoint.json`` without a list of files.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import xxhash

from tidemill.errors import OwnershipError, StateError
from tidemill.files.exclusive import is_temporary
from tidemill.files.storage import TEMPORARY, Storage
from tidemill.runtime.checkpoint.directory import FOLDERS, CheckpointDirectory, identity_records
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.records import Records, said
from tidemill.state.named_files import named_files
from tidemill.state.record import decode_record
from tidemill.state.storage import Published, StateFiles

MARK, CLAIM = "savepoint.json", "claimed.json"
MARK_VERSION = 4
STATE, SOURCES = "state", "sources"
_CHUNK = 8 << 20
_OWN_FILES = (MARK, CLAIM, "committed.json", "origin.json", "lock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Savepoint:
    """A savepoint that is complete as far as its records say. ``created``: in milliseconds since 1970, 0 if
    it is not known. ``files``: all files by name, empty if the savepoint has no list of them. ``finished``:
    it is not a checkpoint directory."""

    storage: Storage
    identity: JobIdentity
    commit: EpochCommit | None
    created: int = 0
    files: Mapping[str, Published] = field(default_factory=dict)
    finished: bool = True

    @classmethod
    def open(cls, storage: Storage) -> Self:
        """StateError where there is none."""
        try:
            mark = read_mark(storage, MARK)
            if mark is None and not _has_job(storage):
                raise _none(storage)
            return cls.with_mark(storage, mark)
        except OSError as e:
            raise unreadable(storage, e) from e

    @classmethod
    def with_mark(cls, storage: Storage, mark: Mapping[str, Any] | None) -> Self:
        """The records beside a mark; None: those of a checkpoint directory."""
        directory = CheckpointDirectory(storage)
        identity = directory.stored_identity()
        if identity is None:
            raise _none(storage)
        return cls(
            storage=storage,
            identity=identity,
            commit=directory.last_commit(),
            created=int((mark or {}).get("created", 0)),
            files=listed_files(mark),
            finished=mark is not None,
        )

    @property
    def where(self) -> str:
        return self.storage.full_path("")

    @property
    def what(self) -> str:
        """As errors name it."""
        return f"the savepoint '{self.where}'" if self.finished else f"the checkpoint in '{self.where}'"

    @property
    def epoch(self) -> int:
        return self.commit.epoch if self.commit is not None else 0

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.size for file in self.files.values())

    @property
    def is_published(self) -> bool:
        """Whether it is known that sinks have what its last epoch has given them."""
        if self.finished or self.commit is None or not any(self.commit.tokens.values()):
            return True
        return CheckpointDirectory(self.storage).is_published(self.commit)

    def manifests(self, operators: Mapping[str, Any] | None = None) -> list[str]:
        """What the commit names, of these operators alone where they are given."""
        held = self.commit.slices if self.commit is not None else {}
        wanted = held if operators is None else {op: held[op] for op in held if op in operators}
        return [s.manifest for parts in wanted.values() for slices in parts.values() for s in slices]

    def state_files(self, operators: Mapping[str, Any] | None = None) -> dict[str, Published]:
        """By name below the savepoint."""
        files = StateFiles.open(self.storage.below(STATE), self.what)
        manifests = self.manifests(operators)
        found = {f"{STATE}/{n}": p for n, p in named_files(files, map(self.within, manifests)).items()}
        return {self.within(name): file for name, file in found.items()}

    def source_files(self) -> list[str]:
        """A job that runs may be writing others."""
        return sorted(f.path for f in self.storage.files(SOURCES) if TEMPORARY not in f.path)

    def check_whole(self) -> None:
        """Reads every file; StateError for the first that is not as it was written."""
        files = self.files or self.state_files()
        for path, expected in files.items():
            try:
                found = read_sum(self.storage, self.within(path))
            except OSError as e:
                raise self._damaged(path, f"it cannot be read: {said(e)}") from e
            if found.size != expected.size:
                raise self._damaged(path, f"it has {found.size} bytes, {expected.size} were written")
            if found.checksum != expected.checksum:
                raise self._damaged(path, "its checksum is not that of what was written")

    def within(self, name: str) -> str:
        """StateError for a name that leads out of the directory: anybody may have made the savepoint."""
        if name.startswith("/") or ".." in name.split("/"):
            raise self._damaged(name, "it is named, but does not lie in it")
        return name

    def remove(self) -> None:
        """StateError for a checkpoint directory."""
        if not self.finished:
            raise StateError(f"'{self.where}' is the checkpoint directory of a job, not a savepoint.")
        remove_savepoint(self.storage)

    def _damaged(self, path: str, why: str) -> StateError:
        return StateError(
            f"{self.what[0].upper()}{self.what[1:]} is damaged: '{path}': {why}",
            hint="Take a whole copy of it, or another savepoint.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The content of a savepoint: a job after an epoch that is published. The named files stay until the
    savepoint is written."""

    identity: JobIdentity
    commit: EpochCommit | None
    checkpoint: Storage

    def write(self, target: Storage) -> None:
        """StateError where it cannot be written; nothing is left then.

        1. The records are put, first whose it is: of two that write there at once one is refused. 2. The
        files of the state and of the sources are linked or copied. 3. The directories are forced to disk.
        4. ``savepoint.json``: the savepoint is there.
        """
        with whole_or_absent(target):
            self._write(target)

    def _write(self, target: Storage) -> None:
        commit = None if self.commit is None else replace(self.commit, tokens={})
        made = CheckpointDirectory(target)
        made.make(self.identity, None)  # 1
        if commit is not None:
            made.put_first(commit)
        taken = Savepoint(storage=self.checkpoint, identity=self.identity, commit=commit, finished=False)
        files = taken.state_files()
        for path in (*files, *taken.source_files()):  # 2
            target.take_in(self.checkpoint, path)
            if not self.checkpoint.durable:
                target.force(path)
        seal(target, MARK, self.identity, commit, files)  # 3, 4


@contextmanager
def whole_or_absent(target: Storage) -> Iterator[None]:
    """What is written within into the empty or new directory goes where it fails. StateError. A directory
    whose first record somebody else has put meanwhile is theirs: nothing of it goes."""
    check_empty(target)
    try:
        yield
    except OwnershipError as e:
        raise written_by_another(target) from e
    except OSError as e:
        target.remove_directory("")
        raise unwritten(target, e) from e
    except BaseException:
        target.remove_directory("")
        raise


def check_empty(target: Storage) -> None:
    """StateError where there is something at the place of a new savepoint."""
    try:
        if next(iter(target.files()), None) is not None:
            raise StateError(
                f"The savepoint '{target.full_path('')}' cannot be written: the directory is not empty.",
                hint="Name a directory that is not there yet.",
            )
    except OSError as e:
        raise unwritten(target, e) from e


def seal(
    target: Storage,
    mark: str,
    identity: JobIdentity,
    commit: EpochCommit | None,
    files: Mapping[str, Published],
) -> None:
    """Forces the directories to disk, then puts the record ``mark``, which lists all files there are, but
    for those that somebody who is refused is still writing. ``files``: of some of them length and checksum
    are known."""
    known = dict(files)
    for path in [entry.path for entry in target.files()]:
        if path not in known and not is_temporary(path):
            known[path] = read_sum(target, path)
    for folder in {path.rpartition("/")[0] for path in known}:
        target.force_directory(folder)
    fields = {
        "job": identity.job_id,
        "epoch": commit.epoch if commit is not None else 0,
        "created": int(time.time() * 1000),
        "files": [[path, file.size, file.checksum] for path, file in sorted(known.items())],
    }
    Records.open(target).put(mark, fields, MARK_VERSION)


def read_sum(storage: Storage, path: str) -> Published:
    """Of a file as it is now."""
    digest, size = xxhash.xxh3_64(), 0
    with storage.open(path) as file:
        while piece := file.read(_CHUNK):
            digest.update(piece)
            size += len(piece)
    return Published(size, digest.intdigest())


def remove_savepoint(storage: Storage) -> None:
    """The mark goes first: what is half removed is not a savepoint. Other files in the directory stay."""
    try:
        storage.remove(MARK)
        for folder in FOLDERS:
            storage.remove_directory(folder)
        for name in (*reversed(identity_records(storage)), *_OWN_FILES):
            storage.remove(name)
        if storage.is_local and next(iter(storage.files()), None) is None:
            storage.remove_directory("")
    except OSError as e:
        raise StateError(f"The savepoint '{storage.full_path('')}' cannot be removed: {said(e)}") from e


def unreadable(storage: Storage, error: OSError) -> StateError:
    return StateError(f"The savepoint '{storage.full_path('')}' cannot be read: {said(error)}")


def written_by_another(storage: Storage) -> StateError:
    return StateError(
        f"The savepoint '{storage.full_path('')}' cannot be written: another statement writes there.",
        hint="Name a directory that is not there yet.",
    )


def unwritten(storage: Storage, error: OSError) -> StateError:
    return StateError(f"The savepoint '{storage.full_path('')}' cannot be written: {said(error)}")


def _none(storage: Storage) -> StateError:
    half = next(iter(storage.files()), None) is not None
    why = f"it has no '{MARK}', so it was never finished" if half else "there is nothing"
    return StateError(
        f"'{storage.full_path('')}' is not a savepoint: {why}.",
        hint="Name a directory that CREATE SAVEPOINT or STOP JOB ... WITH SAVEPOINT has answered.",
    )


def _has_job(storage: Storage) -> bool:
    return storage.stat("job.json") is not None and storage.stat("owners/1") is not None


def read_mark(storage: Storage, name: str) -> dict[str, Any] | None:
    """The fields of ``savepoint.json``, or of an export's; None where there is none."""
    if storage.stat(name) is None:
        return None
    data = storage.read_bytes(name)
    if b'"version"' not in data:
        return _mark_of_format_3(storage, data)
    return decode_record(data, MARK_VERSION, f"'{name}' of the savepoint '{storage.full_path('')}'")


def listed_files(mark: Mapping[str, Any] | None) -> dict[str, Published]:
    return {path: Published(size, checksum) for path, size, checksum in (mark or {}).get("files", ())}


def _mark_of_format_3(storage: Storage, data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except ValueError as e:
        raise StateError(f"The savepoint '{storage.full_path('')}' is damaged: '{MARK}': {e}") from e
    return fields if isinstance(fields, dict) else {}
