"""A task that is slow for its machine is run a second time elsewhere, its rows are written once, and the
machine gets no more tasks while another is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import visible
from tests.cluster.slow_job import SECOND
from tests.cluster.standalone import Standalone, kill, standalone

pytestmark = pytest.mark.thorough

FIRST = "127.0.0.1"
FILES, ROWS = 12, 10


def test_a_copy_runs_is_told_of_and_writes_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    for number in range(FILES):
        rows = pa.table({"v": pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())})
        pq.write_table(rows, tmp_path / "given" / f"{number:02}.parquet")
    with standalone(tmp_path / "cluster") as cluster:
        blocked, alone = _hosts(cluster, tmp_path)
    written = [int(line) for line in visible.lines(tmp_path / "taken")]
    assert sorted(written) == list(range(FILES * ROWS))
    jobs = [json.loads(f.read_text()) for f in (tmp_path / "history").rglob("*.json")]
    (job,) = (job for job in jobs if job["name"].startswith("insert"))
    assert sum(stage["copies"] for stage in job["stages"]) >= 1
    came = [task for task in job["slow"] if task["copy"] and task["status"] == "SUCCESS"]
    assert {task["host"] for task in came} == {FIRST}
    given_up = {task["task"] for task in job["slow"] if not task["copy"] and task["host"] == SECOND}
    assert {task["task"] for task in came} <= given_up
    # The slow one got no more tasks, until nobody else was left.
    assert (blocked, alone) == ([FIRST], [SECOND])
    assert {(node["host"], node["ended"] - node["begun"]) for node in job["slow_nodes"]} == {(SECOND, 3600)}
    assert {node["task"] for node in job["slow_nodes"]} <= given_up
    # Of the three queries the first ended before, the others ran while it was so.
    assert sorted(len(one["slow_nodes"]) for one in jobs if one is not job) == [0, 1, 1]


def _hosts(cluster: Standalone, folder: Path) -> tuple[list[str], list[str]]:
    """Where tasks run after one was slow, and when the other machine is gone, too."""
    command = [sys.executable, "-m", "tests.cluster.slow_job", cluster.url, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        blocked = job.stdout.readline().split()
        if blocked:
            kill(cluster.workers[0].pid)
            kill(cluster.executor_on(FIRST))
        alone, said = job.communicate("go on\n")
    assert job.returncode == 0, said[-3000:]
    return blocked, alone.split()
