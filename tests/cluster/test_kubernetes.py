"""Jobs whose executors are pods: what a job says of them arrives, and one that is lost changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import visible
from tests.cluster.join_job import totals, write_changes
from tests.cluster.kubernetes import Pod, kubernetes
from tests.cluster.running import Job
from tests.runtime.databases import wait_for

pytestmark = pytest.mark.thorough

ROWS = 60
"""Of each source in an epoch."""
OPTIONS = (
    "spark.executor.instances=2",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.driver.memory=512m",
    "spark.driver.host=127.0.0.1",
    "spark.kubernetes.container.image=registry/spark:4.3",
    "spark.kubernetes.executor.label.team=data",
    "spark.kubernetes.allocation.batch.delay=200ms",
    # Pods are asked for again and again, not watched.
    "spark.kubernetes.executor.enableApiWatcher=false",
    "spark.kubernetes.executor.apiPollingInterval=500ms",
    "parallelism.default=2",
    f"tidemill.epoch.max-rows={ROWS}",
)


def test_a_lost_pod_changes_nothing(tmp_path: Path) -> None:
    expected = write_changes(tmp_path, changes=ROWS * 5)
    with kubernetes(tmp_path / "pods") as cluster:
        job = Job(master=cluster.url, folder=tmp_path, options=OPTIONS)
        job.start()
        try:
            for _ in range(3):
                assert job.await_record()
            cluster.created[0].process.kill()
            while job.await_record():
                continue
        finally:
            job.end()
        assert job.failures == []
        assert totals(visible.lines(tmp_path / "totals")) == expected
        assert len(cluster.created) >= 3
        # Spark's JVM outlives the command by the time that it takes to put things in order.
        wait_for(lambda: list(cluster.pods), [])
        for pod in cluster.created:
            _check(pod)


def _check(pod: Pod) -> None:
    """What was said of executors has come to them."""
    (container,) = pod.said["spec"]["containers"]
    assert container["image"] == "registry/spark:4.3"
    assert container["resources"]["requests"]["cpu"] == "1"
    assert pod.said["metadata"]["labels"]["team"] == "data"
    assert pod.environment["PYTHONPATH"].startswith("tidemill-")
