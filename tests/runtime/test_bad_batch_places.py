"""Batch jobs whose folders are full, or not theirs: what is said, and that nothing is left behind.

Each runs in a process of its own, which makes its own Spark. Who is root is so without the right to pass over
permissions.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.thorough

DISK = "20m"
ROWS = 400_000
"""Of a hundred bytes each: more than the disk."""
_RIGHTS = "-dac_override,-dac_read_search"
UNPRIVILEGED = ["setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def unprivileged() -> list[str]:
    """What a command begins with that must not read and write everything."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may read and write everything, and there is no setpriv to take that away")
    return UNPRIVILEGED


def tables(folder: Path, format: str = "csv") -> str:
    given, taken = (f"'connector' = 'filesystem', 'path' = '{folder}/{name}'" for name in ("given", "taken"))
    return f"""
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE given (k BIGINT, v STRING) WITH ({given}, 'format' = '{format}');
CREATE TABLE taken (k BIGINT, v STRING) WITH ({taken}, 'format' = 'csv');
"""


def write_given(folder: Path, rows: int, format: str = "csv") -> Path:
    """Rows that take a hundred bytes each, in whatever way they are written; the file."""
    (folder / "given").mkdir()
    file = folder / "given" / f"0.{format}"
    made = pa.table(
        {"k": range(rows), "v": [hashlib.sha256(b"%d" % i).hexdigest() + "-" * 28 for i in range(rows)]}
    )
    if format == "parquet":
        pq.write_table(made, file)
    else:
        pa.csv.write_csv(made, file, pa.csv.WriteOptions(include_header=False))
    return file


def failed(folder: Path, script: str, *options: str, before: list[str], **environment: str) -> dict[str, Any]:
    """The error of a script's last statement."""
    (folder / "script.sql").write_text(script)
    command = ["-m", "tidemill", "run", "--format", "json", "-D", "spark.master=local[2,3]"]
    done = subprocess.run(
        [*before, sys.executable, *command, *options, str(folder / "script.sql")],
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    document = json.loads(done.stdout)
    assert document["ok"] is False
    error: dict[str, Any] = document["statements"][-1]["error"]
    return error


INSERT = "INSERT INTO taken SELECT k, v FROM given"
MOVED = "INSERT INTO taken SELECT k, MAX(v) AS v FROM given GROUP BY k"


def test_no_room_for_what_is_moved(tmp_path: Path, disk: Path) -> None:
    write_given(tmp_path, ROWS)
    script = tables(tmp_path) + MOVED
    error = failed(tmp_path, script, "-D", f"spark.local.dir={disk}", before=[])
    assert error["code"] == "STATE"
    assert "No space left on device" in error["message"]
    assert f"Spark keeps them in {disk}" in error["message"]
    assert "'spark.local.dir'" in error["message"]
    assert not list(tmp_path.glob("taken/*"))


def test_no_room_for_what_is_written(tmp_path: Path, disk: Path) -> None:
    write_given(tmp_path, ROWS)
    (disk / "taken").mkdir()
    (tmp_path / "taken").symlink_to(disk / "taken")
    error = failed(tmp_path, tables(tmp_path) + INSERT, before=[])
    assert error["code"] == "CONNECTOR"
    assert f"Cannot write to {tmp_path}/taken: " in error["message"]
    assert "No space left on device" in error["message"]
    assert "Make room there, or give the table another 'path'." in error["message"]
    assert not list((disk / "taken").iterdir())


def test_a_folder_that_must_not_be_written(tmp_path: Path, unprivileged: list[str]) -> None:
    write_given(tmp_path, 3)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken").chmod(0o555)
    error = failed(tmp_path, tables(tmp_path) + INSERT, before=unprivileged)
    assert error["code"] == "CONNECTOR"
    assert f"Cannot write to {tmp_path}/taken: " in error["message"]
    assert "Permission denied" in error["message"]
    assert "must be allowed to write there" in error["message"]
    assert not list((tmp_path / "taken").iterdir())


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_file_that_must_not_be_read(tmp_path: Path, unprivileged: list[str], format: str) -> None:
    file = write_given(tmp_path, 3, format)
    file.chmod(0)
    error = failed(tmp_path, tables(tmp_path, format) + INSERT, before=unprivileged)
    assert error["code"] == "CONNECTOR"
    assert str(file) in error["message"]
    assert "Permission denied" in error["message"]
    assert not list(tmp_path.glob("taken/*"))


def test_a_folder_that_must_not_be_listed(tmp_path: Path, unprivileged: list[str]) -> None:
    write_given(tmp_path, 3)
    (tmp_path / "given").chmod(0)
    error = failed(tmp_path, tables(tmp_path) + INSERT, before=unprivileged)
    (tmp_path / "given").chmod(0o755)
    assert error["code"] == "CONNECTOR"
    assert str(tmp_path / "given") in error["message"]
    assert "Permission denied" in error["message"]


def test_a_folder_for_what_is_moved_that_must_not_be_written(tmp_path: Path, unprivileged: list[str]) -> None:
    write_given(tmp_path, 3)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(0o555)
    error = failed(
        tmp_path, tables(tmp_path) + MOVED, "-D", f"spark.local.dir={tmp_path}/kept", before=unprivileged
    )
    assert error["code"] == "SETUP"
    assert f"'{tmp_path}/kept': Permission denied" in error["message"]
    assert "Set 'spark.local.dir'" in error["message"]
