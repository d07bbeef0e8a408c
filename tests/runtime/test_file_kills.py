"""kill -9 between all steps of what makes savepoints, takes them up and edits them, and of what gives a job
another query: whole or absent, and done again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.file_kills import OPERATIONS, REPOSITORY

FEW = ("switch", "backfill with a claim", "edit")


def kills(folder: Path, *given: str) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.runtime.file_kills", str(folder), *given]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_a_kill_before_some_changes_on_disk(processes: None, tmp_path: Path) -> None:
    found = kills(tmp_path, *FEW, "--every", "11")
    assert found.keys() == set(FEW)
    assert min(found.values()) > 1, found


@pytest.mark.thorough
@pytest.mark.timeout(1600)
def test_a_kill_before_each_change_on_disk(processes: None, tmp_path: Path) -> None:
    found = kills(tmp_path)
    assert found.keys() == OPERATIONS.keys()
    assert min(found.values()) > 5, found
