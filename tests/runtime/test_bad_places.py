"""Disks that are full or read-only, directories in use, clocks set back: said, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.databases import wait_for
from tests.runtime.running import Crash, Session, crash_at
from tests.runtime.test_kill import REPOSITORY
from tests.runtime.test_recovery import EXPECTED, INSERTS, PLAIN, ROWS, counts, options, statements, written
from tidemill.errors import StateError, TidemillError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.records import Records

pytestmark = pytest.mark.thorough

SIZE = 512 << 10
STEP = 4 << 10


def _mount(*arguments: str) -> bool:
    done = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    return done.returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of ``SIZE`` bytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)):
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@contextmanager
def filled(disk: Path, left: int) -> Iterator[None]:
    """Nearly all of the disk is taken."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    filler.write_bytes(b"\0" * max(free - left, 0))
    try:
        yield
    finally:
        filler.unlink()


def make_input(folder: Path) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.csv").write_text("".join(f"{n % 5},{n}\n" for n in range(ROWS)))


def run(folder: Path, checkpoint: Path) -> None:
    made = Session(options(folder) | {"execution.checkpointing.dir": str(checkpoint)})
    made.execute(*statements(folder), INSERTS)


@pytest.mark.parametrize("full", ["checkpoint", "output"])
def test_a_disk_that_gets_full_at_any_step(
    tmp_path: Path, disk: Path, spark: SparkSession, full: str
) -> None:
    """Each start has a little more room than the one before, and goes on from what that committed."""
    checkpoint = disk / "checkpoint" if full == "checkpoint" else tmp_path / "checkpoint"
    folder = disk if full == "output" else tmp_path
    make_input(folder)
    said = []
    for left in range(0, SIZE, STEP):
        with filled(disk, left):
            try:
                run(folder, checkpoint)
                break
            except TidemillError as error:
                said.append(str(error))
    assert len(said) > 2
    assert [text for text in said if "No space left on device" not in text] == []
    run(folder, checkpoint)
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED


@pytest.mark.parametrize("place", ["checkpoint", "output"])
def test_a_disk_that_is_read_only(tmp_path: Path, disk: Path, spark: SparkSession, place: str) -> None:
    checkpoint = disk / "checkpoint" if place == "checkpoint" else tmp_path / "checkpoint"
    folder = disk if place == "output" else tmp_path
    make_input(folder)
    with pytest.raises(Crash):
        Session(
            options(folder) | {"execution.checkpointing.dir": str(checkpoint)}, crash_at("committed", 2)
        ).execute(*statements(folder), INSERTS)
    assert _mount("-o", "remount,ro", str(disk))
    with pytest.raises(TidemillError, match="Read-only file system"):
        run(folder, checkpoint)
    assert _mount("-o", "remount,rw", str(disk))
    run(folder, checkpoint)
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED


def test_sparks_own_disk_is_full(tmp_path: Path, disk: Path) -> None:
    """Shuffle files do not fit; the job is in a process of its own, which makes its own Spark."""
    make_input(tmp_path)
    command = [sys.executable, "-m", "tests.runtime.victim", str(tmp_path), "never", "0", "9"]
    environment = os.environ | {"SPARK_LOCAL_DIRS": str(disk)}
    with filled(disk, 8 << 10):
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, check=False, timeout=300
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, timeout=300, check=True
    )
    assert written(tmp_path, "plain") == PLAIN
    assert counts(tmp_path) == EXPECTED


def test_a_batch_query_that_spills_to_a_full_disk(tmp_path: Path, disk: Path) -> None:
    """Said so; with more room the query is answered."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{n * 7919 % 100_003}\n" for n in range(100_003)))
    script = tmp_path / "q.sql"
    script.write_text(
        "SET 'execution.runtime-mode' = 'batch';\n"
        "CREATE TABLE t (n BIGINT) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}/in', 'format' = 'csv');\n"
        "SELECT n FROM (SELECT * FROM t ORDER BY n LIMIT 90000) ORDER BY n DESC LIMIT 1;\n"
    )
    command = [sys.executable, "-m", "tidemill.client.main", "run", str(script)]

    def run(**more: str) -> subprocess.CompletedProcess[bytes]:
        environment = os.environ | more
        return subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, check=False, timeout=300
        )

    with filled(disk, 8 << 10):
        done = run(SPARK_LOCAL_DIRS=str(disk))
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert b"Writing temporary files failed: No space left on device" in said
    assert b"epoch" not in said
    done = run()
    assert done.returncode == 0
    assert b"89999" in done.stdout


def test_two_jobs_in_one_directory(tmp_path: Path, spark: SparkSession) -> None:
    """The first one lives on a watched directory."""
    make_input(tmp_path)
    watched = statements(tmp_path)[0].replace("'format'", "'source.monitor-interval'='50 ms', 'format'")
    first = Session(options(tmp_path))
    first.execute(watched, *statements(tmp_path)[1:])
    job = first.environment.execute_sql(INSERTS).get_job_client()
    assert job is not None
    second = Session(options(tmp_path))
    second.execute(watched, *statements(tmp_path)[1:])
    try:
        with pytest.raises(StateError, match="is in use by another running job"):
            second.execute(INSERTS)
        wait_for(lambda: written(tmp_path, "plain"), PLAIN)
    finally:
        job.stop()
        job.wait(60)
    assert counts(tmp_path) == EXPECTED


def test_a_clock_that_is_set_back_stands_still(tmp_path: Path, spark: SparkSession) -> None:
    make_input(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(Crash):
        Session(options(tmp_path), crash_at("committed", 2)).execute(*statements(tmp_path), INSERTS)
    records = Records.open(Storage(str(checkpoint)))
    fields = records.read("epochs/2.commit.json", "the commit record")
    assert fields is not None
    ahead = fields["time"] + 3_600_000
    records.remove("epochs/2.commit.json")
    records.put("epochs/2.commit.json", fields | {"time": ahead})
    run(tmp_path, checkpoint)
    last = records.read("epochs/5.commit.json", "the commit record")
    assert last is not None
    assert last["time"] == ahead
    assert counts(tmp_path) == EXPECTED
