"""kill -9 between all steps of what makes savepoints and takes them up: whole or absent, and done again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.file_kills import OPERATIONS, REPOSITORY


@pytest.mark.thorough
def test_a_kill_before_each_change_on_disk(processes: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.runtime.file_kills", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert found.keys() == OPERATIONS.keys()
    assert min(found.values()) > 5, found
