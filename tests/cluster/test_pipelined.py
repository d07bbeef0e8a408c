"""Rows of pipelined exchanges go from executor to executor, and one that is lost costs a second run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.standalone import standalone
from tests.runtime.pipelined_job import FILES, ROWS

pytestmark = pytest.mark.thorough

NAMES = ("keys", "join")


def test_two_executors(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    with standalone(tmp_path / "cluster", cores=4) as cluster:
        job = [sys.executable, "-m", "tests.runtime.pipelined_job", str(tmp_path / "job"), cluster.url]
        done = subprocess.run([*job, *NAMES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    for name in NAMES:
        assert told[name]["told"] == []
        assert told[name]["how"] == ["PIPELINED: 8 tasks at once"]
        assert sorted(told[name]["pipelined"]) == sorted(told[name]["blocking"])
    assert told["lost"]["marks"] >= 1
    assert told["lost"]["rows"] == [f"('s{i}', {FILES * ROWS // 5})" for i in range(5)]
