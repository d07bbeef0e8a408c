"""Jobs on a real standalone cluster give what they give on one machine, whoever is killed meanwhile.

``--kills=50`` kills as many times at random; each time the checkpoint has got a new record since the last.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.join_job import SCRIPT, folded, write_changes, written
from tests.cluster.standalone import Standalone, kill, standalone

ROWS = 60
"""Of each source in an epoch."""
EPOCHS_PER_KILL = 2
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
_SECONDS = 600


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_kills_change_nothing(cluster: Standalone, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    kills = int(pytestconfig.getoption("--kills"))
    chance = random.Random(int(pytestconfig.getoption("--seed")))
    expected = write_changes(tmp_path, changes=ROWS * EPOCHS_PER_KILL * kills)
    job = Job(cluster=cluster, folder=tmp_path)
    job.start()
    try:
        # Each of them at least once.
        for victim in [*VICTIMS, *chance.choices(VICTIMS, k=max(kills - len(VICTIMS), 0))]:
            if not job.await_record():
                break
            time.sleep(chance.random())  # the kill comes at any moment of what follows
            job.kill(victim)
        while job.await_record():
            continue
    finally:
        job.end()
    assert job.failures == []
    assert set(job.killed) == set(VICTIMS)
    assert folded(written(tmp_path)) == expected


def test_workers_that_lack_a_library_are_named(cluster: Standalone, tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text("SELECT 1;")
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


def packed_environment(folder: Path, python: str) -> Path:
    """An archive with a program ``bin/python``, which is the machine's own."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    program.chmod(0o755)
    archive = folder / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(program, "bin/python")
    return archive


@dataclass(slots=True, kw_only=True)
class Job:
    """``tidemill run`` in a process of its own, started again as a supervisor would. ``failures``: its log
    whenever it ended by itself."""

    cluster: Standalone
    folder: Path
    killed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _seen: frozenset[str] = frozenset()

    def start(self) -> None:
        script = self.folder / "job.sql"
        script.write_text(SCRIPT.format(place=self.folder))
        shared = f"tidemill.shared-filesystem={self.folder}"
        given = [arg for option in (*OPTIONS, shared) for arg in ("-D", option)]
        environment = packed_environment(self.folder, sys.executable)
        command = [sys.executable, "-m", "tidemill", "run", str(script), "--master", self.cluster.url]
        command += ["--py-env", str(environment)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--checkpoint-dir", str(self.folder / "checkpoint"), *given],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def await_record(self) -> bool:
        """Waits until the job has got on since the last time; False when it has ended instead."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if self._status() == 0:
                return False
            records = frozenset(p.name for p in (self.folder / "checkpoint" / "epochs").glob("*.json"))
            if records - self._seen:
                self._seen = records
                return True
            time.sleep(0.05)
        raise AssertionError(f"no new record in {_SECONDS} s: {self._log()}")

    def kill(self, victim: str) -> None:
        if victim == "driver":
            self.end()
        elif victim == "worker":
            self.cluster.workers[0].kill()
            self.cluster.workers[0].wait()
            self.cluster.start_worker(0)
        else:
            pids = self.cluster.executors() if victim == "executor" else self.cluster.python_daemons()
            for pid in pids[:1]:
                kill(pid)
            if not pids:
                return
        self.killed.append(victim)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _status(self) -> int | None:
        """Of the job's process; one that failed is started again."""
        assert self._process is not None
        status = self._process.poll()
        if status is not None and status > 0:
            self.failures.append(self._log())
        if status:
            self.start()
            return None
        return status

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]
