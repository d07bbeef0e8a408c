"""kill -9 of resident workers, of the driver and of Spark's JVM: the sinks end up the same, change by change.

``--kills`` says how many there are. For many, ``python -m tests.runtime.spark.resident.kills`` has the time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.spark.resident.kills import REPOSITORY, run


@pytest.mark.thorough
@pytest.mark.usefixtures("processes")
@pytest.mark.timeout(900)
def test_random_kills(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    wanted, seed = request.config.getoption("--kills"), request.config.getoption("--seed")
    assert run(tmp_path, wanted, seed).total() >= wanted


@pytest.mark.thorough
@pytest.mark.usefixtures("processes")
@pytest.mark.timeout(900)
def test_random_kills_of_forks(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Without Spark, ten times as many."""
    kills, seed = 10 * request.config.getoption("--kills"), request.config.getoption("--seed")
    forked = "tests.runtime.spark.resident.forked"
    command = [sys.executable, "-m", forked, str(tmp_path), str(kills), str(seed)]
    ended = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stderr
