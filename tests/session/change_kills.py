"""kill -9 while a job gets another query by a backfill, and while a savepoint is edited.

``python -m tests.session.change_kills FOLDER [WAY...] [--every N]`` first notes which changes on disk each
way makes. Then it goes each way again in processes that kill themselves before one of these changes: before
each N-th, from the first one on. After each kill: a savepoint is byte by byte as it was; what was to be made
is complete or absent; a job has the old query or the new one, and goes on with either, so that its sink has
what a naive twin has. Says as JSON how many kills each way took.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.file_kills import content, is_change, made_savepoint
from tests.session.environments import ask, new_session
from tests.session.test_alter_job import COUNTED, SUMS, make_folder, put, session, shows
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

REPOSITORY = Path(__file__).parents[2]
NEW = COUNTED.replace("FROM t", "FROM t WHERE v > 5")
BACKFILL = {"tidemill__evolution": "backfill"}
BEFORE = ((1, 10), (2, 20), (3, 5), (1, 1), (3, 6), *((n, n) for n in range(4, 12)))
AFTER = ((1, 7), (2, 2), (9, 1), (20, 30))
_NAMES = re.compile(r"[0-9a-f]{8,}")
_RUN_AGAIN = "/replays/"
Step = tuple[str, int]
"""A change on disk, without the names that are other ones each time, and how often it has come."""
Row = tuple[int, int | None, int | None]


def sums(*rows: tuple[int, int]) -> list[Row]:
    """What ``SUMS`` gives."""
    keys = sorted({k for k, _ in rows})
    return [(key, sum(v for k, v in rows if k == key), None) for key in keys]


def counted(*rows: tuple[int, int]) -> list[Row]:
    """What ``NEW`` gives."""
    kept = [(k, v) for k, v in rows if v > 5]
    counts = {key: sum(k == key for k, _ in kept) for key, _ in kept}
    return [(key, total, counts[key]) for key, total, _ in sums(*kept)]


def base(root: Path) -> None:
    """A job that has ended, a savepoint of it, and the rows that its sink has."""
    make_folder(root)
    job = started(session(root), SUMS)
    put(root, "a", *BEFORE[:4])
    shows(root, *sums(*BEFORE[:4]))
    put(root, "b", *BEFORE[4:])
    shows(root, *sums(*BEFORE))
    job.create_savepoint(path=str(root / "savepoint"))
    job.cancel()


def started(made: TableEnvironment, sql: str) -> JobHandle:
    job = made.execute_sql(sql).job
    assert job is not None
    return job


def restart(root: Path, begin: Callable[[], None]) -> None:
    begin()
    job = started(session(root, **BACKFILL), NEW)
    shows(root, *counted(*BEFORE))
    job.cancel()


def alter(root: Path, begin: Callable[[], None]) -> None:
    made = session(root, **BACKFILL)
    job = started(made, SUMS)
    begin()
    ask(made, f"ALTER JOB '{job.job_id}' AS {NEW}")
    shows(root, *counted(*BEFORE))
    job.cancel()


def from_savepoint(root: Path, *, claims: bool = False, sql: str = NEW, **more: str) -> JobHandle:
    how = {
        "execution__state-recovery__path": str(root / "savepoint"),
        "execution__state-recovery__claim-mode": "CLAIM" if claims else "NO_CLAIM",
    }
    return started(session(root, "new", **how, **more), sql)


def take_up(root: Path, begin: Callable[[], None], *, claims: bool) -> None:
    begin()
    job = from_savepoint(root, claims=claims, **BACKFILL)
    shows(root, *counted(*BEFORE))
    job.cancel()


CHANGES = {
    "update": "UPDATE group_aggregate_1 SET `SUM(v)` = 1000 WHERE k = 2",
    "delete": "DELETE FROM group_aggregate_1 WHERE k = 2",
    "insert": "INSERT INTO group_aggregate_1 VALUES (2, 1000), (77, 7)",
}
CHANGED: dict[str, dict[int, int | None]] = {
    "update": {2: 1000},
    "delete": {2: None},
    "insert": {2: 1000, 77: 7},
}


def editing(root: Path, made: str) -> TableEnvironment:
    found = new_session(parallelism__default="2", execution__runtime_mode="batch")
    ask(found, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{root}/{made}')", "USE CATALOG s")
    return found


def edit(root: Path, begin: Callable[[], None], *, change: str, target: str = "edited") -> None:
    editor = editing(root, "savepoint")
    ask(editor, f"SET 'tidemill.savepoint.target' = '{root}/{target}'")
    begin()
    editor.execute_sql(CHANGES[change]).wait()


def check_job(root: Path, number: int, *, whole: bool) -> None:
    """The old query goes on, or the new one; the old one becomes the new one when it is started again."""
    directory = CheckpointDirectory(Storage(str(root / "state")))
    identity = directory.stored_identity()
    assert identity is not None
    rows = BEFORE
    if identity.query["inserts"] == [SUMS]:
        assert not whole
        if number % 2:
            job = started(session(root), SUMS)
            put(root, "c", *AFTER)
            rows += AFTER
            shows(root, *sums(*rows))
            job.cancel()
    else:
        with pytest.raises(StateError, match="belongs to another query"):
            started(session(root), SUMS)
    goes_on(root, started(session(root, **BACKFILL), NEW), rows)


def goes_on(root: Path, job: JobHandle, rows: tuple[tuple[int, int], ...]) -> None:
    """The new query, which gets more rows."""
    shows(root, *counted(*rows))
    put(root, "d", *AFTER)
    shows(root, *counted(*rows, *AFTER))
    job.cancel()
    assert not (Path(root) / "state" / "replays").exists()


def check_taken_up(root: Path, number: int, *, whole: bool, claims: bool) -> None:
    there = (root / "new" / "job.json").exists()
    assert there or not whole
    if not there:
        Savepoint.open(Storage(str(root / "savepoint"))).check_whole()
    if not there and number % 2:
        # The one that was killed is given up: the old query begins with the savepoint, in the same place.
        job = from_savepoint(root, claims=claims, sql=SUMS)
        put(root, "c", *AFTER)
        shows(root, *sums(*BEFORE, *AFTER))
        job.cancel()
    else:
        goes_on(root, from_savepoint(root, claims=claims, **BACKFILL), BEFORE)
    # A kill while it is removed leaves files that are no savepoint.
    assert made_savepoint(root / "savepoint") != claims


def check_edited(root: Path, number: int, *, whole: bool, change: str) -> None:
    target = "edited" if made_savepoint(root / "edited") else "again"
    if target == "again":
        assert not whole
        edit(root, lambda: None, change=change, target=target)
        assert made_savepoint(root / target)
    before: dict[int, int | None] = {k: s for k, s, _ in sums(*BEFORE)}
    wanted = {k: s for k, s in (before | CHANGED[change]).items() if s is not None}
    found = ask(editing(root, target), "SELECT k, `SUM(v)` FROM group_aggregate_1")
    assert dict(found) == wanted


@dataclass(frozen=True, slots=True)
class Way:
    """``run``: calls its second argument when it begins to change something; ``check``: after a kill, or its
    end; ``stays``: the folders that are byte by byte what they were."""

    run: Callable[..., None]
    check: Callable[..., None]
    stays: tuple[str, ...] = ("savepoint",)


def taking_up(claims: bool) -> Way:
    def run(root: Path, begin: Callable[[], None]) -> None:
        take_up(root, begin, claims=claims)

    def check(root: Path, number: int, *, whole: bool) -> None:
        check_taken_up(root, number, whole=whole, claims=claims)

    return Way(run, check, () if claims else ("savepoint", "state"))


def edit_by(change: str) -> Way:
    def run(root: Path, begin: Callable[[], None]) -> None:
        edit(root, begin, change=change)

    def check(root: Path, number: int, *, whole: bool) -> None:
        check_edited(root, number, whole=whole, change=change)

    return Way(run, check, ("savepoint", "state"))


WAYS = {
    "restart": Way(restart, check_job),
    "alter": Way(alter, check_job),
    "savepoint": taking_up(claims=False),
    "claim": taking_up(claims=True),
    **{change: edit_by(change) for change in CHANGES},
}


def hear(root: Path, on_step: Callable[[Step], None]) -> None:
    """Calls ``on_step`` before each change below ``root`` that this process makes from now on."""
    times = Counter[str]()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if not (is_change(event, arguments) or event == "sqlite3.connect"):
            return
        path = _path(event, *arguments)
        if path.startswith(str(root)):
            change = _NAMES.sub("*", f"{event} {path.removeprefix(str(root))}")
            times[change] += 1
            on_step((change, times[change]))

    sys.addaudithook(heard)


def _path(event: str, given: object, *more: object) -> str:
    """In full; what goes may be named within a folder's descriptor."""
    if not isinstance(given, str | bytes | os.PathLike):
        return ""
    within = more[0] if event in ("os.remove", "os.rmdir") else -1
    folder = "" if within == -1 else os.readlink(f"/proc/self/fd/{within}")
    return os.path.join(folder, os.fsdecode(given))


def victim(way: str, root: Path, wanted: Step | None) -> list[Step]:
    """Runs the way, and kills this process before that step; else all steps."""
    steps: list[Step] = []

    def on_step(step: Step) -> None:
        steps.append(step)
        if step == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    WAYS[way].run(root, lambda: hear(root, on_step))
    return steps


def run(way: str, here: Path, *step: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.session.change_kills", str(here), way, "--victim", *step]
    environment = {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(
        command, cwd=REPOSITORY, check=False, capture_output=True, text=True, env=environment, timeout=1800
    )


def points(steps: list[Step]) -> list[Step]:
    """The steps that a kill comes before. Of those that only run queries again the first and the last of each
    record are enough."""
    last = dict(steps)
    return [
        (change, time)
        for change, time in steps
        if _RUN_AGAIN not in change or (change.startswith("os.link") and time in (1, last[change]))
    ]


def kills(root: Path, way: str, every: int) -> int:
    """How many times it was killed; AssertionError where a kill has left something half."""
    here, begun = root / "here", WAYS[way]
    shutil.copytree(root / "base", here)
    done = run(way, here)
    assert done.returncode == 0, done.stderr[-4000:]
    begun.check(here, 0, whole=True)
    steps = points([(change, time) for change, time in json.loads(done.stdout.splitlines()[-1])])[::every]
    made = 0
    for number, (change, time) in enumerate(steps):
        shutil.rmtree(here)
        shutil.copytree(root / "base", here)
        before = [content(here / name) for name in begun.stays]
        done = run(way, here, change, str(time))
        assert done.returncode in (0, -signal.SIGKILL), (way, change, time, done.stderr[-4000:])
        made += done.returncode != 0
        try:
            assert [content(here / name) for name in begun.stays] == before
            begun.check(here, number, whole=done.returncode == 0)
        except BaseException as e:
            e.add_note(f"{way}, killed before {change} ({time})")
            raise
    shutil.rmtree(here)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ways", nargs="*", default=[*WAYS])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--victim", nargs="*")
    given = parser.parse_args()
    if given.victim is not None:
        wanted = (given.victim[0], int(given.victim[1])) if given.victim else None
        print(json.dumps(victim(given.ways[0], given.folder, wanted)))
        return
    # Tables and state name their files in full: all is done in one place.
    here = given.folder / "here"
    here.mkdir(parents=True)
    base(here)
    here.rename(given.folder / "base")
    found = {}
    for way in given.ways:
        found[way] = kills(given.folder, way, given.every)
        print(way, found[way], file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
