"""A task that is slow for its machine is run a second time elsewhere, and its rows are written once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests import visible
from tests.cluster.slow_job import SECOND
from tests.cluster.standalone import standalone

FIRST = "127.0.0.1"
FILES, ROWS = 12, 10


def test_a_copy_runs_is_told_of_and_writes_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for number in range(FILES):
        rows = pa.table({"v": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})
        pq.write_table(rows, tmp_path / "given" / f"{number:02}.parquet")
    with standalone(tmp_path / "cluster") as cluster:
        command = [sys.executable, "-m", "tests.cluster.slow_job", cluster.url, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    written = [int(line) for line in visible.lines(tmp_path / "taken")]
    assert sorted(written) == list(range(FILES * ROWS))
    jobs = [json.loads(f.read_text()) for f in (tmp_path / "history").rglob("*.json")]
    (job,) = (job for job in jobs if job["name"].startswith("insert"))
    assert sum(stage["copies"] for stage in job["stages"]) >= 1
    came = [task for task in job["slow"] if task["copy"] and task["status"] == "SUCCESS"]
    assert {task["host"] for task in came} == {FIRST}
    given_up = {task["task"] for task in job["slow"] if not task["copy"] and task["host"] == SECOND}
    assert {task["task"] for task in came} <= given_up
