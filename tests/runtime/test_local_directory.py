"""The folder of a local Spark: this process's own; those of dead processes go."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tidemill.errors import SetupError
from tidemill.runtime.spark import settings
from tidemill.runtime.spark.local_directory import check_local_directories, local_directory
from tidemill.runtime.spark.settings import spark_settings, unix_sockets

_DEAD = """
import os, sys
from tidemill.runtime.spark.local_directory import local_directory
made = local_directory()
os.mkdir(made + "/blockmgr-1")
print(made, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)


def test_what_a_killed_run_left_is_removed_and_the_living_stay() -> None:
    living = local_directory()
    killed = subprocess.run([sys.executable, "-c", _DEAD], capture_output=True, text=True, check=False)
    left = Path(killed.stdout.strip())
    assert (left / "blockmgr-1").is_dir()
    assert left.stat().st_mode & 0o777 == 0o700
    local_directory()
    assert not left.exists()
    assert Path(living).is_dir()


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    nowhere, good = "/proc/nothing", str(tmp_path / "made")
    with pytest.raises(SetupError, match=f"(?s){nowhere}': No such file.*{file}': .*spark.local.dir"):
        check_local_directories(f"{nowhere}, {file}")
    check_local_directories(f"{nowhere},{good}")  # Spark leaves out the first
    assert Path(good).is_dir()
    check_local_directories("")


def test_a_local_spark_listens_on_loopback_alone() -> None:
    local = spark_settings({})
    assert local["spark.driver.bindAddress"] == local["spark.driver.host"] == "127.0.0.1"
    remote = spark_settings({"spark.master": "spark://h:7077"})
    assert "spark.driver.bindAddress" not in remote
    assert "spark.local.dir" not in remote
    assert spark_settings({"spark.local.dir": "/mine"})["spark.local.dir"] == "/mine"


def test_workers_are_reached_by_sockets_that_only_this_user_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_own_folder", lambda: "/mine")
    local = spark_settings({})
    assert local["spark.python.unix.domain.socket.enabled"] == "true"
    assert local["spark.python.unix.domain.socket.dir"] == local["spark.local.dir"] == "/mine"
    assert "spark.python.unix.domain.socket.enabled" not in spark_settings({"spark.master": "spark://h:7077"})


def test_a_folder_with_a_long_path_has_no_sockets() -> None:
    longest = "/" + "f" * (103 - len("/") - len("/.00000000-0000-0000-0000-000000000000.sock"))
    assert unix_sockets(longest)["spark.python.unix.domain.socket.dir"] == longest
    assert unix_sockets(longest + "f") == {}
