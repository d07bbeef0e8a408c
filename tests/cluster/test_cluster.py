"""Jobs on a real standalone cluster give what they give on one machine, whoever is killed meanwhile.

``--kills=50`` kills as many times at random; each time the checkpoint has got a new record since the last.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import visible
from tests.cluster.join_job import totals, write_changes
from tests.cluster.running import Job, packed_environment
from tests.cluster.standalone import Standalone, kill, standalone

pytestmark = pytest.mark.thorough

ROWS = 60
"""Of each source in an epoch."""
EPOCHS_PER_KILL = {"0": 4, "1 mb": 24}
"""By what a small epoch reads, which is one task. More than pass between two kills: the job must not end
before the last of them."""
OPTIONS = (
    "spark.cores.max=2",
    "spark.executor.memory=512m",
    "spark.driver.memory=512m",
    "spark.driver.host=127.0.0.1",
    "parallelism.default=2",
    # Of what is not done when others are, a copy is run on the other machine.
    "spark.speculation=true",
    "spark.speculation.interval=20ms",
    "spark.speculation.quantile=0.1",
    "spark.speculation.multiplier=1.1",
    "spark.speculation.minTaskRuntime=0ms",
    f"tidemill.epoch.max-rows={ROWS}",
)
VICTIMS = ("executor", "python", "worker", "driver")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("small", EPOCHS_PER_KILL)
def test_kills_change_nothing(
    small: str, cluster: Standalone, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills = int(pytestconfig.getoption("--kills"))
    chance = random.Random(int(pytestconfig.getoption("--seed")))
    expected = write_changes(tmp_path, changes=ROWS * EPOCHS_PER_KILL[small] * kills)
    job = Job(master=cluster.url, folder=tmp_path, options=(*OPTIONS, f"tidemill.epoch.small-bytes={small}"))
    killed: list[str] = []
    job.start()
    try:
        # Each of them at least once.
        for victim in [*VICTIMS, *chance.choices(VICTIMS, k=max(kills - len(VICTIMS), 0))]:
            assert job.await_record(), f"ended after {killed}"
            time.sleep(chance.random())  # the kill comes at any moment of what follows
            while not _kill(victim, cluster, job):
                time.sleep(0.05)
            killed.append(victim)
        while job.await_record():
            continue
    finally:
        job.end()
    assert job.failures == []
    assert totals(visible.lines(tmp_path / "totals")) == expected


def test_workers_that_lack_a_library_are_named(cluster: Standalone, tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT COUNT(*) FROM (VALUES 1, 2) AS t(x);")
    # Without the site's packages.
    environment = packed_environment(tmp_path, f"{sys.executable} -S")
    command = [sys.executable, "-m", "tidemill", "run", str(script), "--master", cluster.url]
    given = [arg for option in OPTIONS for arg in ("-D", option)]
    done = subprocess.run(
        [*command, "--py-env", str(environment), *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.search(r"on worker \S+ cannot import pyarrow: No module named 'pyarrow'", done.stderr)
    assert "--py-env" in done.stderr


def _kill(victim: str, cluster: Standalone, job: Job) -> bool:
    """Whether there was one."""
    if victim == "driver":
        job.end()
    elif victim == "worker":
        cluster.workers[0].kill()
        cluster.workers[0].wait()
        cluster.start_worker(0)
    else:
        pids = cluster.executors() if victim == "executor" else cluster.python_daemons()
        for pid in pids[:1]:
            kill(pid)
        return bool(pids)
    return True
