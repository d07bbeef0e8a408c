"""Kills a job until it was killed often enough: ``python -m tests.runtime.spark.resident.kills 100``.

``victim`` kills; each job goes on after each death until it ends. Says as JSON which kills there were. Exit
status 1, and what was wrong, if a sink differs from that of a job that nobody kills, or a job ends by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

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


def run(root: Path, wanted: int, seed: int) -> Counter[str]:
    """At least so many kills, by their kind. AssertionError if something is wrong."""
    alone = life(root)
    assert alone.returncode == 0, alone.stderr
    expected, kills, jobs = changes(root, len(QUERIES)), Counter[str](), 0
    assert all(expected)
    while kills.total() < wanted:
        jobs += 1
        folder = root / f"job-{jobs}"
        folder.mkdir()
        while True:
            before, seed = len(killed(folder)), seed + 1
            is_last = kills.total() + before >= wanted
            ended = life(folder, *(() if is_last else (str(seed),)))
            if ended.returncode == 0:
                break
            assert len(killed(folder)) > before, ended.stderr
            print(f"job {jobs}: {killed(folder)}", file=sys.stderr, flush=True)
        kills.update(killed(folder))
        assert changes(folder, len(QUERIES)) == expected, f"job {jobs} after {killed(folder)}"
    return kills


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(run(Path(made), int(sys.argv[1]), seed=1)))
