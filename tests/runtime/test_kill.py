"""kill -9 at random commit steps, one after the other, and of Python workers: the sinks end up the same."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.test_recovery import EXPECTED, PLAIN, ROWS, STEPS, counts, written

pytestmark = pytest.mark.usefixtures("processes")

KILLS = 8
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{n % 5},{n}\n" for n in range(ROWS)))
    return tmp_path


def run(folder: Path, step: str, time: int, rows: int) -> int:
    command = [sys.executable, "-m", "tests.runtime.victim", str(folder), step, str(time), str(rows)]
    return subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, timeout=300).returncode


def test_a_kill_and_a_resumption(folder: Path) -> None:
    assert run(folder, "committed", 1, 10) == -signal.SIGKILL
    assert run(folder, "never", 0, 10) == 0
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_random_kills(folder: Path) -> None:
    chance = random.Random(20)
    for n in range(KILLS):
        # Every fourth kill lets an epoch pass; forty epochs of one row outlast them all.
        assert run(folder, chance.choice(STEPS), 2 if n % 4 == 3 else 1, 1) == -signal.SIGKILL
    assert run(folder, "never", 0, 1) == 0
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED


@pytest.mark.thorough
@pytest.mark.parametrize("victims", ["workers", "daemon"])
def test_killed_python_processes_are_replaced(folder: Path, victims: str) -> None:
    """Each epoch finds dead workers; without their daemon each costs Spark a try of a task, so that it gives
    up."""
    assert run(folder, victims, 0, 5) == 0
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED
