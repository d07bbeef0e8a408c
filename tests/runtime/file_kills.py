"""kill -9 before each change on disk that an operation on a savepoint makes, one after the other.

``python -m tests.runtime.file_kills FOLDER`` does each operation in forked children that kill themselves
before their first change of a file or folder, their second one, and so on, until one comes to its end. After
each kill: what was there is byte by byte as it was; what was to be made is complete or absent; and the
operation, done again, comes to its end. Says as JSON how many kills each operation took.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.runtime.test_savepoint_files import IDENTITY, WANTED, commit, snapshot, state
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import Savepoint, remove_savepoint
from tidemill.runtime.checkpoint.savepoint_export import export_savepoint, import_savepoint

CHANGING = ("os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MOST = 1000
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Operation:
    """``before``: the folders that must stay as they are. ``made``: whether what it makes is complete (True)
    or absent (False); it raises what is neither. ``again``: makes it after a kill."""

    run: Callable[[Path], None]
    before: tuple[str, ...]
    made: Callable[[Path], bool]
    again: Callable[[Path], None]


def made_savepoint(place: Path) -> bool:
    try:
        Savepoint.open(Storage(str(place))).check_whole()
    except StateError as e:
        if "is not a savepoint" in e.message:
            return False
        raise
    return True


def made_job(place: Path) -> bool:
    if not (place / "job.json").exists():
        return False
    directory = CheckpointDirectory(Storage(str(place)))
    identity, last = directory.stored_identity(), directory.last_commit()
    assert identity is not None
    assert last is not None
    assert (identity.job_id, last.epoch, last.tokens) == ("new", 7, {})
    Savepoint(storage=directory.root, identity=identity, commit=last, finished=False).check_whole()
    return True


def create(name: str) -> Callable[[Path], None]:
    return lambda root: snapshot(root / "job").write(Storage(str(root / name)))


def start(claims: bool) -> Callable[[Path], None]:
    def run(root: Path) -> None:
        with CheckpointDirectory(Storage(str(root / "new"))) as directory:
            made = Origin(savepoint=Savepoint.open(Storage(str(root / "savepoint"))), claims=claims)
            made.start(directory, WANTED)

    return run


def started_again(root: Path) -> None:
    """A job that is there needs no savepoint, which it may have removed."""
    if not made_job(root / "new"):
        start(claims=True)(root)


def export(name: str) -> Callable[[Path], None]:
    return lambda root: export_savepoint(
        Savepoint.open(Storage(str(root / "savepoint"))), Storage(str(root / name))
    )


def imported(name: str) -> Callable[[Path], None]:
    return lambda root: import_savepoint(Storage(str(root / "export")), Storage(str(root / name)))


def made_export(root: Path) -> bool:
    """Complete if it can be imported."""
    try:
        import_savepoint(Storage(str(root / "new")), Storage(str(root / "back")))
    except StateError as e:
        if "is no export" in e.message:
            return False
        raise
    return made_savepoint(root / "back")


OPERATIONS = {
    "create": Operation(create("new"), ("job",), lambda r: made_savepoint(r / "new"), create("other")),
    "start": Operation(start(False), ("savepoint",), lambda r: made_job(r / "new"), start(False)),
    "claim": Operation(start(True), (), lambda r: made_job(r / "new"), started_again),
    "export": Operation(export("new"), ("savepoint",), made_export, export("other")),
    "import": Operation(imported("new"), ("export",), lambda r: made_savepoint(r / "new"), imported("other")),
    "drop": Operation(
        lambda r: remove_savepoint(Storage(str(r / "savepoint"))),
        ("job",),
        lambda r: not made_savepoint(r / "savepoint"),
        lambda r: remove_savepoint(Storage(str(r / "savepoint"))),
    ),
}


def base(root: Path) -> None:
    """A job that has ended, a savepoint of it, and an export of that."""
    with CheckpointDirectory(Storage(str(root / "job"))) as opened:
        opened.open(IDENTITY)
        opened.write_commit(commit(state(root / "job")))
        opened.begin_showing()
    (root / "job" / "sources" / "scan-1").mkdir()
    (root / "job" / "sources" / "scan-1" / "taken.json").write_text("[]")
    create("savepoint")(root)
    export("export")(root)


def content(root: Path) -> dict[str, bytes]:
    """All files but locks, which hold nothing."""
    found = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def child(run: Callable[[], object], kill_before: int = 0) -> int:
    """The exit status of a fork that runs it; -9 if it was killed before that change on disk."""
    pid = os.fork()
    if not pid:
        try:
            if kill_before:
                _kill_before(kill_before)
            run()
            os._exit(0)
        except BaseException as e:
            sys.stderr.write(f"{type(e).__name__}: {e}\n")
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _kill_before(number: int) -> None:
    changes = 0

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if event in CHANGING or writes:
            changes += 1
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def kills(root: Path, operation: Operation) -> int:
    """How many kills it took until it came to its end; AssertionError where one has left something half."""
    for number in range(1, _MOST):
        here = root / str(number)
        shutil.copytree(root / "base", here)
        before = [content(here / name) for name in operation.before]
        status = child(partial(operation.run, here), number)
        assert status in (0, -signal.SIGKILL), status
        assert [content(here / name) for name in operation.before] == before, number
        assert child(partial(_check, operation, here, whole=status == 0)) == 0, number
        shutil.rmtree(here)
        if status == 0:
            return number - 1
    raise AssertionError("it does not come to its end")


def _check(operation: Operation, here: Path, *, whole: bool) -> None:
    made = operation.made(here)
    assert made or not whole
    if not whole:
        operation.again(here)


def main() -> None:
    root, found = Path(sys.argv[1]), {}
    assert child(lambda: base(root / "base")) == 0
    for name, operation in OPERATIONS.items():
        (root / name).mkdir()
        (root / name / "base").symlink_to(root / "base")
        found[name] = kills(root / name, operation)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
