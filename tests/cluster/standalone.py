"""A standalone Spark cluster on this machine: a master and workers, each with folders of its own.

Workers run outside the checkout and without its environment: what their Python has of Tidemill was shipped.
Each has a loopback address of its own, so that Spark takes them for two machines: it fetches blocks over the
network and runs speculative copies.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_HOST = "127.0.0.1"
_REGISTERED = "Successfully registered with master"
_SECONDS = 60


@dataclass(slots=True)
class Standalone:
    """``workers``: the processes by number; a killed one is started again by ``start_worker``. ``cores``: of
    each."""

    folder: Path
    cores: int = 1
    url: str = ""
    workers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _master: subprocess.Popen[bytes] | None = None

    def start(self, workers: int) -> None:
        self._master, log = self._run("master", _HOST, "master.Master", "--port", "0")
        self.url = _said(log, _MASTER, self._master)
        for number in range(workers):
            self.start_worker(number)

    def start_worker(self, number: int) -> None:
        """Returns when the master knows it."""
        name = f"worker-{number}"
        options = (
            "--cores",
            str(self.cores),
            "--memory",
            "1g",
            "--work-dir",
            str(self.folder / name / "work"),
        )
        process, log = self._run(name, f"127.0.0.{number + 1}", "worker.Worker", *options, self.url)
        self.workers[number] = process
        _said(log, re.compile(f"({_REGISTERED})"), process)

    def executors(self) -> list[int]:
        """Process ids of the executors' JVMs."""
        return self._children("CoarseGrainedExecutorBackend")

    def executor_on(self, host: str) -> int:
        """The process id of the one that has this address."""
        (found,) = (
            pid
            for pid in self.executors()
            if f"--hostname\0{host}\0" in (Path("/proc") / str(pid) / "cmdline").read_text()
        )
        return found

    def python_daemons(self) -> list[int]:
        """Of the workers' Python processes, the daemons and what they forked."""
        return self._children("tidemill.runtime.spark.worker_daemon")

    def stop(self) -> None:
        for process in (*self.workers.values(), self._master):
            if process is not None:
                _end(process)
        for pid in (*self.executors(), *self.python_daemons()):
            kill(pid)

    def _run(self, name: str, host: str, part: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
        place = self.folder / name
        place.mkdir(parents=True, exist_ok=True)
        log = place / f"{len(list(place.glob('*.log')))}.log"
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{part}"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, "--host", host, "--webui-port", "0", *options],
                cwd=place,
                env=self._environment(place, host),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return process, log

    def _environment(self, place: Path, host: str) -> dict[str, str]:
        (place / "local").mkdir(exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "JAVA_HOME", "HOME", "LANG")}
        return {
            **kept,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_DIRS": str(place / "local"),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "TIDEMILL_TEST_CLUSTER": str(self.folder),
        }

    def _children(self, part: str) -> list[int]:
        """Processes of this cluster with ``part`` in their command line."""
        mark = f"TIDEMILL_TEST_CLUSTER={self.folder}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (
                    part.encode() in (entry / "cmdline").read_bytes()
                    and mark in (entry / "environ").read_bytes()
                ):
                    found.append(int(entry.name))
        return sorted(found)


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[Standalone]:
    cluster = Standalone(folder, cores)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _said(log: Path, pattern: re.Pattern[str], process: subprocess.Popen[bytes]) -> str:
    """The first group of what the process writes to its log."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        found = pattern.search(log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise AssertionError(f"no '{pattern.pattern}' in {log}:\n{log.read_text(errors='replace')[-2000:]}")
