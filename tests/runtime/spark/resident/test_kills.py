"""kill -9 of resident workers, of the driver and of Spark's JVM: the sinks end up the same, change by change.

``--kills`` says how many there are.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.spark.resident.jobs import changes
from tests.runtime.spark.resident.victim import QUERIES

REPOSITORY = Path(__file__).parents[4]
_PATIENCE = 900


def life(folder: Path, *seed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.runtime.spark.resident.victim", str(folder), *seed]
    return subprocess.run(
        command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=_PATIENCE
    )


def killed(folder: Path) -> list[str]:
    noted = folder / "kills"
    return noted.read_text().splitlines() if noted.exists() else []


@pytest.mark.thorough
@pytest.mark.usefixtures("processes")
@pytest.mark.timeout(7200)
def test_random_kills(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    wanted, seed = request.config.getoption("--kills"), request.config.getoption("--seed")
    assert life(tmp_path).returncode == 0
    expected, all_kills, jobs = changes(tmp_path, len(QUERIES)), Counter[str](), 0
    assert all(expected)
    while all_kills.total() < wanted:
        jobs += 1
        folder = tmp_path / f"job-{jobs}"
        folder.mkdir()
        while True:
            before, seed = len(killed(folder)), seed + 1
            enough = all_kills.total() + before >= wanted
            ended = life(folder, *(() if enough else (str(seed),)))
            if ended.returncode == 0:
                break
            assert len(killed(folder)) > before, ended.stderr
        all_kills.update(killed(folder))
        assert changes(folder, len(QUERIES)) == expected, f"job {jobs}, after {all_kills}"
    print(f"{dict(all_kills)} in {jobs} jobs")


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_random_kills_of_forks(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Without Spark, ten times as many."""
    kills, seed = 10 * request.config.getoption("--kills"), request.config.getoption("--seed")
    command = [
        sys.executable,
        "-m",
        "tests.runtime.spark.resident.forked",
        str(tmp_path),
        str(kills),
        str(seed),
    ]
    ended = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=3600)
    assert ended.returncode == 0, ended.stderr
