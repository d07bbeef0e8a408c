"""kill -9 of a process that changes a job's query by a backfill, or edits a savepoint: at a few of the steps.

All steps: ``python -m tests.session.change_kills FOLDER``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.change_kills import REPOSITORY

EVERY = 20


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["restart", "alter", "claim", "update"])
def test_a_kill_before_some_changes_on_disk(processes: None, tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-m", "tests.session.change_kills", str(tmp_path), way, "--every", str(EVERY)]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=3500)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)[way] > 1
