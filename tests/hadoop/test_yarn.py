"""Jobs whose executors are YARN's containers: they get what they need, and a lost one changes nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyspark
import pytest

from tests import visible
from tests.cluster.join_job import totals, write_changes
from tests.cluster.running import Job
from tests.cluster.standalone import kill
from tests.hadoop.mini import Hadoop

pytestmark = pytest.mark.thorough

ROWS = 60
"""Of each source in an epoch."""
OPTIONS = (
    "spark.executor.instances=2",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.driver.memory=512m",
    "spark.driver.host=127.0.0.1",
    "spark.yarn.am.memory=512m",
    f"spark.yarn.jars=local:{Path(pyspark.__file__).parent}/jars/*",
    "parallelism.default=2",
    f"tidemill.epoch.max-rows={ROWS}",
)


def test_a_lost_container_changes_nothing(cluster: Hadoop, tmp_path: Path) -> None:
    cluster.start_yarn(nodes=2)
    expected = write_changes(tmp_path, changes=ROWS * 6)
    environment = {"HADOOP_CONF_DIR": str(cluster.configuration)}
    job = Job(master="yarn", folder=tmp_path, options=OPTIONS, environment=environment)
    job.start()
    try:
        for _ in range(3):
            assert job.await_record()
        first, *_ = _executors(cluster)
        kill(first)
        while job.await_record():
            continue
    finally:
        job.end()
    assert job.failures == []
    assert totals(visible.lines(tmp_path / "totals")) == expected


def _executors(cluster: Hadoop) -> list[int]:
    """The JVMs that run in a folder of the cluster's nodes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            ours = (entry / "cwd").readlink().is_relative_to(cluster.folder)
            program, *rest = (entry / "cmdline").read_bytes().split(b"\0")
            if ours and program.endswith(b"java") and any(b"ExecutorBackend" in part for part in rest):
                found.append(int(entry.name))
    return sorted(found)
