"""Flink's REST protocol, route by route, against what the real gateway answered, where that is at hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

REPOSITORY = Path(__file__).parents[2]
CLIENTS = REPOSITORY.parent / "shared" / "clients"


@pytest.mark.skipif(not CLIENTS.is_dir(), reason="the folder of clients is not here")
@pytest.mark.timeout(900)
def test_every_route_answers_as_flinks() -> None:
    command = [sys.executable, "scripts/run_clients.py", str(CLIENTS), "rest"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAIL")]
    assert (run.returncode, failed) == (0, []), run.stderr[-2000:]
