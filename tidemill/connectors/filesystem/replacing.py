"""Replaces files of a table by other files, all at once for those who read the table through Tidemill.

A folder renames one file at a time. So a record decides which files a table has, and names are changed later.

1. Tasks have staged the new files where no reader looks.
2. *commit*: the record ``.changes/<number>.json`` appears, whole and durable; of two statements that want the
   same number one fails. A crash before this step leaves the old files, a crash after it the new ones.
3. *settle*: the new files get their names, the old files go, and the record says that it is done. Repeating
   this changes nothing. A reader that finds an unfinished record does it before it lists the files.

A listing asks for the last record before and after it looks, and looks again if a change came meanwhile.
Files keep the content that their name had first: a reader with an older listing reads old rows, or fails as a
file is gone. The records stay, so that a streaming job can tell that a file it has read was replaced.

Only on local and mounted disks: in object stores a rename is a copy, and in HDFS Arrow's rename removes what
has the new name first. A slow process would bring a file back there, or remove one.

Cost of a listing: two looks into ``.changes``; nothing is there unless a statement has replaced files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from tidemill.errors import CommitUnknownError, ConnectorError
from tidemill.files.entries import FileEntry
from tidemill.files.exclusive import OutcomeUnknownError, exclusive
from tidemill.files.storage import Storage

T = TypeVar("T")
OVERWRITE = "INSERT OVERWRITE"
_RECORDS = ".changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``statement``: its first words; ``added``: the final name and the staged path of each new file;
    ``removed``: the files that go, as they were listed; ``staging``: the folder of the staged files, '' for
    none."""

    statement: str
    added: tuple[tuple[str, str], ...] = ()
    removed: tuple[FileEntry, ...] = ()
    staging: str = ""
    done: bool = False


def commit(storage: Storage, change: Change) -> None:
    """Makes ``change``. ConnectorError if another statement came first or a file to remove is not as it was
    listed: nothing has changed then. CommitUnknownError: the next reader finds out."""
    number = settle(storage) + 1
    for entry, now in zip(change.removed, storage.stats([e.path for e in change.removed]), strict=True):
        if entry != now:
            raise _overtaken(storage, change, f"file {storage.full_path(entry.path)} has changed")
    storage.make_directory(_RECORDS)
    try:
        exclusive(storage).put(_name(number), _encoded(change))
    except FileExistsError:
        raise _overtaken(storage, change, "another statement has replaced files of the table") from None
    except OutcomeUnknownError as e:
        raise CommitUnknownError(
            f"Whether {change.statement} has changed the files in {storage.location} is not known: {e}",
            hint="Read the table: it has all of the change or nothing of it.",
        ) from None
    settle(storage)


def settle(storage: Storage) -> int:
    """The number of the last change, 0 if there is none. Finishes the change first if its process has not.
    ConnectorError if that fails."""
    number = 0
    try:
        number = max(_numbers(storage), default=0)
        last = _read(storage, number) if number else None
        if last is not None and not last.done:
            _finish(storage, number, last)
    except (OSError, pa.ArrowException) as e:
        if _is_done(storage, number):
            return number  # another process was faster
        raise ConnectorError(
            f"A statement that changes the files in {storage.location} has not ended, and it cannot be"
            f" finished: {e}",
            hint="Whoever reads the table first after a crash must be allowed to write there.",
        ) from None
    return number


def settled(storage: Storage, look: Callable[[], T]) -> T:
    """What ``look`` finds while no statement replaces files."""
    number = settle(storage)
    while True:
        found = look()
        before, number = number, settle(storage)
        if number == before:
            return found


@dataclass(slots=True, kw_only=True)
class Changes:
    """The changes of the table in ``storage``, as a job sees them that runs beside them."""

    storage: Storage
    _known: dict[int, Change] = field(default_factory=dict)

    def check(self, seen: Callable[[str], int | None]) -> None:
        """ConnectorError if a DELETE, UPDATE or TRUNCATE came for a file of the job: rows of it would be
        there twice, or be missing, or stay though they are deleted. ``seen``: the modification time that
        the job knows of a file, None for no file of the job; one that came later under a name that was
        removed is another file. Call it after listing."""
        self._look()
        removed = ((c, old) for c in self._known.values() if c.statement != OVERWRITE for old in c.removed)
        for change, old in removed:
            modified = seen(old.path)
            if modified is not None and modified <= old.modified:
                raise ConnectorError(
                    f"{change.statement} has changed rows of the file {self.storage.full_path(old.path)},"
                    " which belongs to the input of the job.",
                    hint="A streaming job reads appended files. Start it anew, without its checkpoint.",
                )

    def has_removed(self, path: str) -> bool:
        """Whether a statement has removed the file."""
        self._look()
        return any(path == old.path for change in self._known.values() for old in change.removed)

    def has_made(self, staging: str) -> bool:
        """Whether the files staged in the folder ``staging`` have replaced others."""
        self._look()
        return any(change.staging == staging for change in self._known.values())

    def _look(self) -> None:
        """Reads the changes since the last look."""
        try:
            news = [number for number in _numbers(self.storage) if number not in self._known]
            self._known.update((number, _read(self.storage, number)) for number in news)
        except (OSError, pa.ArrowException) as e:
            raise ConnectorError(f"Cannot list {self.storage.location}: {e}") from None


def _finish(storage: Storage, number: int, change: Change) -> None:
    """Step 3."""
    folders = {name.rpartition("/")[0] for name, _ in change.added}
    for folder in sorted(folders):
        storage.make_directory(folder)
    storage.each(lambda file: _move(storage, *file), change.added)
    for folder in folders:
        storage.force_directory(folder)
    storage.each(lambda old: storage.remove(old.path), change.removed)
    for folder in {old.path.rpartition("/")[0] for old in change.removed}:
        storage.force_directory(folder)
    if change.staging:
        storage.remove_directory(change.staging)
    done = _encoded(replace(change, done=True))
    storage.publish(_name(number), lambda stream: stream.write(done))


def _is_done(storage: Storage, number: int) -> bool:
    try:
        return bool(number) and _read(storage, number).done
    except (OSError, pa.ArrowException):
        return False


def _move(storage: Storage, name: str, staged: str) -> None:
    try:
        storage.move(staged, name)
    except OSError:
        if storage.stat(name) is None:  # another process may have moved it
            raise


def _numbers(storage: Storage) -> list[int]:
    if not storage.is_local:
        return []
    try:
        files = [entry.path.rpartition("/")[2] for entry in storage.files(_RECORDS, recursive=False)]
    except NotADirectoryError:
        return []  # the table is one file
    return [int(name.removesuffix(".json")) for name in files if name[:-5].isdecimal()]


def _read(storage: Storage, number: int) -> Change:
    told = json.loads(storage.read_bytes(_name(number)))
    added = tuple((name, staged) for name, staged in told["added"])
    return Change(**{**told, "added": added, "removed": tuple(FileEntry(**old) for old in told["removed"])})


def _encoded(change: Change) -> bytes:
    return json.dumps(asdict(change)).encode()


def _name(number: int) -> str:
    return f"{_RECORDS}/{number:08d}.json"


def _overtaken(storage: Storage, change: Change, reason: str) -> ConnectorError:
    """The error for a change that is given up; its staged files go."""
    if change.staging:
        storage.remove_directory(change.staging)
    return ConnectorError(
        f"The files in {storage.location} stay as they are: {reason} meanwhile.",
        hint="Run the statement again.",
    )
