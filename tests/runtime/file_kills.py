"""kill -9 before each change on disk that an operation on a savepoint or on a job's query makes.

``python -m tests.runtime.file_kills FOLDER [OPERATION...] [--every N]`` does each operation in forks that
kill themselves before their first change of a file or folder, before their (1 + N)-th one, and so on, until
one comes to its end. After each kill: what was there is byte by byte as it was; what was to be made is
complete or absent; and the operation, done again, comes to its end. Says as JSON how many kills each
operation took.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.runtime.state_tables.test_editing import Row, edited_one, records, sink, written
from tests.runtime.test_savepoint_files import IDENTITY, OPERATOR, WANTED, commit, snapshot, state
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import Savepoint, remove_savepoint
from tidemill.runtime.checkpoint.savepoint_export import export_savepoint, import_savepoint
from tidemill.runtime.replay.backfill import take_state
from tidemill.runtime.replay.replaying import Replayed

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


def made_job(place: Path, epoch: int = 7) -> bool:
    if not (place / "job.json").exists():
        return False
    directory = CheckpointDirectory(Storage(str(place)))
    identity, last = directory.stored_identity(), directory.last_commit()
    assert identity is not None
    assert last is not None
    assert (identity.job_id, last.epoch, bool(last.tokens)) == ("new", epoch, epoch == 8)
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


CHANGED = replace(IDENTITY, job_id="new", fingerprint="g", operators={"agg-9": "y"})
"""Another query, whose state comes from the beginning of the sources."""


def _replayed(place: Path) -> Replayed:
    """The state of ``CHANGED`` in epoch 8, computed beside the job in ``place``. Each process gives its files
    other names, as each run of a backfill does."""
    manifest = state(place / "replays" / "now", os.getpid())
    made = replace(commit(manifest, 8), manifests={OPERATOR: {"0": [[manifest, 0, 4096]]}})
    return Replayed(identity=CHANGED, commit=made, sources=(), outputs=())


def switch(root: Path) -> None:
    """The last steps of a backfill in the directory of a job."""
    place = Storage(str(root / "job"))
    with CheckpointDirectory(place) as directory:
        stored = directory.take()
        directory.check_published(directory.closed(directory.last_commit()))
        now = _replayed(root / "job")
        take_state(place, place.below("replays/now"), now)
        assert now.commit is not None
        directory.switch(replace(CHANGED, job_id=stored.job_id), now.commit)
        place.remove_directory("replays")


def switched(root: Path) -> bool:
    """Whether it is the job of the other query; either query has its own epoch and its own state."""
    directory = CheckpointDirectory(Storage(str(root / "job")))
    identity, last = directory.stored_identity(), directory.last_commit()
    assert identity is not None
    assert last is not None
    changed = identity.fingerprint == CHANGED.fingerprint
    assert (identity.job_id, last.epoch) == ("old", 8 if changed else 7)
    Savepoint(storage=directory.root, identity=identity, commit=last, finished=False).check_whole()
    return changed


def switched_again(root: Path) -> None:
    """The query that it is goes on, and becomes the other one."""
    if not switched(root):
        with CheckpointDirectory(Storage(str(root / "job"))) as directory:
            assert directory.open(IDENTITY).fingerprint == IDENTITY.fingerprint
        switch(root)
        assert switched(root)
    with CheckpointDirectory(Storage(str(root / "job"))) as directory:
        assert directory.open(CHANGED).job_id == "old"
    assert not (root / "job" / "replays").exists()


def backfill(claims: bool) -> Callable[[Path], None]:
    """A job of another query begins with a savepoint."""

    def fill(directory: CheckpointDirectory, identity: JobIdentity) -> None:
        now = _replayed(Path(directory.root.root))
        take_state(directory.root, directory.root.below("replays/now"), now)
        assert now.commit is not None
        directory.write_commit(now.commit)

    def run(root: Path) -> None:
        place = Storage(str(root / "new"))
        with CheckpointDirectory(place) as directory:
            savepoint = Savepoint.open(Storage(str(root / "savepoint")))
            Origin(savepoint=savepoint, claims=claims, backfill=fill).start(directory, CHANGED)
            place.remove_directory("replays")

    return run


def backfilled_again(root: Path) -> None:
    if not made_job(root / "new", epoch=8):
        backfill(claims=True)(root)
    assert not (root / "new" / "replays").exists() or made_job(root / "new", epoch=8)


ROWS: list[Row] = [("c3", 50, 40, 999, 2), *((f"new{n}", 1, 0, None, None) for n in range(30))]


def edit(name: str, *, deletes: bool = False) -> Callable[[Path], None]:
    """Rows of the state in a savepoint are written, or removed."""

    def run(root: Path) -> None:
        old = Savepoint.open(Storage(str(root / "edit" / "old")))
        made = sink(old, root / name, deletes=deletes)
        made.begin()
        made.publish(1, written(made, ROWS[:1] if deletes else ROWS))

    return run


def edited(*, deletes: bool) -> Callable[[Path], bool]:
    def made(root: Path) -> bool:
        if not made_savepoint(root / "new"):
            return False
        old, new = (Savepoint.open(Storage(str(root / name))) for name in ("edit/old", "new"))
        kept = [row for row in records(old) if row[0] != "c3"]
        assert records(new) == sorted([*kept, *([] if deletes else ROWS)])
        return True

    return made


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
    "switch": Operation(switch, ("savepoint",), switched, switched_again),
    "backfill": Operation(
        backfill(False), ("savepoint",), lambda r: made_job(r / "new", epoch=8), backfill(False)
    ),
    "backfill with a claim": Operation(
        backfill(True), (), lambda r: made_job(r / "new", epoch=8), backfilled_again
    ),
    "edit": Operation(edit("new"), ("edit",), edited(deletes=False), edit("other")),
    "delete": Operation(
        edit("new", deletes=True), ("edit",), edited(deletes=True), edit("other", deletes=True)
    ),
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
        opened.note_published(7)
    edited_one(root / "edit")
    (root / "job" / "sources" / "scan-1").mkdir()
    (root / "job" / "sources" / "scan-1" / "taken.json").write_text("[]")
    create("savepoint")(root)
    export("export")(root)


def content(root: Path) -> dict[str, bytes]:
    """All files but locks, which hold nothing."""
    found = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def child(run: Callable[[], object], number: int = 0) -> int:
    """The exit status of a fork that runs it; -9 if it was killed before that change on disk."""
    pid = os.fork()
    if not pid:
        try:
            if number:
                _kill_before(number)
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
        if is_change(event, arguments):
            changes += 1
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def is_change(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether what Python is about to do changes files or folders."""
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
    return event in CHANGING or bool(writes)


def kills(root: Path, operation: Operation, every: int) -> int:
    """How many kills it took until it came to its end; AssertionError where one has left something half."""
    for made, number in enumerate(range(1, _MOST, every)):
        here = root / str(number)
        shutil.copytree(root / "base", here)
        before = [content(here / name) for name in operation.before]
        status = child(partial(operation.run, here), number)
        assert status in (0, -signal.SIGKILL), status
        assert [content(here / name) for name in operation.before] == before, number
        assert child(partial(_check, operation, here, whole=status == 0)) == 0, number
        shutil.rmtree(here)
        if status == 0:
            return made
    raise AssertionError("it does not come to its end")


def _check(operation: Operation, here: Path, *, whole: bool) -> None:
    made = operation.made(here)
    assert made or not whole
    if not whole:
        operation.again(here)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("operations", nargs="*", default=[*OPERATIONS])
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    root, found = given.folder, {}
    assert child(lambda: base(root / "base")) == 0
    for name in given.operations:
        (root / name).mkdir()
        (root / name / "base").symlink_to(root / "base")
        found[name] = kills(root / name, OPERATIONS[name], given.every)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
