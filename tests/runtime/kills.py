"""The kill proof: a job that is killed at random, in all its processes, ends with what it ends with alone.

``python -m tests.runtime.kills --kills 200 --seed 7 [--minutes 60] [--database URL]`` runs the job of
``proof`` once undisturbed, then kills the driver, Spark's JVM, the daemon of Python workers, a worker, daemon
and workers at once, or asks the driver to go (SIGTERM), at random moments, as often as it is told or as time
allows. The death of driver or JVM ends the job, which is started again; that of Python processes must not.
When it has come to its end it is compared and begun anew. ``PYTHONHASHSEED`` is another one in every process.
The database is a PostgreSQL of its own where there is one, else SQLite. Says on standard error how far it is,
and as JSON what it did; exit status 1 where anything differed, or a job ended by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.connectors.postgres import programs, server
from tests.runtime.processes import end, kill, parts_of
from tests.runtime.proof import make_database, make_input, results

REPOSITORY = Path(__file__).parents[2]
WAYS = ("driver", "jvm", "term", "daemon", "worker", "all Python")
FATAL = ("driver", "jvm", "term")
_PATIENCE = 600
"""Seconds without an epoch after which a job counts as stuck."""
_DUMP_SECONDS = 2.0
_JAVA = "-XX:TieredStopAtLevel=1"
"""JVMs that live for seconds do without the second compiler."""


@dataclass(slots=True)
class Job:
    """A process that runs a job in ``folder``: a module with its arguments, says a line for every epoch."""

    folder: Path
    command: tuple[str, ...]
    process: subprocess.Popen[bytes] = field(init=False)
    said: IO[bytes] = field(default_factory=io.BytesIO)
    epochs: int = 0
    struck: bool = False

    def start(self) -> None:
        self.said.close()
        self.struck = False
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
        environment["JDK_JAVA_OPTIONS"] = _JAVA
        command = [sys.executable, "-X", "faulthandler", "-m", *self.command]
        with (self.folder / "errors.txt").open("wb") as errors:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        self.said = self.process.stdout

    def wait(self, seconds: float) -> bool:
        """Lets the job run so long, or until it has made an epoch; whether it has."""
        ready, _, _ = select.select([self.said], [], [], seconds)
        if ready and self.said.readline():
            self.epochs += 1
            return True
        return False

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def errors(self) -> str:
        return (self.folder / "errors.txt").read_text(errors="replace")[-4000:]

    def end(self) -> str:
        """Ends it with all its processes; the stacks of the threads of its JVM and of its driver."""
        told = self.errors() if self.is_over else self._stacks()
        self.said.close()
        return told

    def _stacks(self) -> str:
        parts = parts_of(self.process.pid)
        for jvm in parts["jvm"]:
            kill(jvm, signal.SIGQUIT)
        time.sleep(_DUMP_SECONDS)
        kill(self.process.pid, signal.SIGABRT)
        self.process.wait()
        end(parts)
        return self.said.read().decode(errors="replace") + self.errors()


@dataclass(slots=True)
class Proof:
    """``killed``: how often in which way, ``last``: the last of them; ``refused``: what a job said that ended
    badly though neither its driver nor its JVM was killed."""

    root: Path
    database: str
    chance: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    epochs: int = 0
    refused: list[str] = field(default_factory=list)
    last: str = ""
    differences: list[str] = field(default_factory=list)

    def folder(self, name: str) -> Path:
        made = self.root / name
        made.mkdir()
        (made / "in").symlink_to(self.root / "in")
        make_database(self.database)
        return made

    def job(self, folder: Path) -> Job:
        return Job(folder, ("tests.runtime.proof", str(folder), self.database))

    def alone(self) -> dict[str, Any]:
        job = self.job(self.folder("alone"))
        job.start()
        while not job.is_over:
            job.wait(_PATIENCE)
        told = job.end()
        if job.process.returncode != 0:
            raise SystemExit(f"The job fails on its own:\n{told}")
        return results(job.folder, self.database)

    def run(self, kills: int, epochs: int, seconds: float) -> None:
        """``seconds`` count from when the job has run undisturbed."""
        make_input(self.root / "in", epochs)
        expected = self.alone()
        until = time.monotonic() + seconds
        _say(f"the job alone: {expected}")
        while self.killed.total() < kills and time.monotonic() < until and not self.refused:
            self.rounds += 1
            folder = self.folder(f"round-{self.rounds}")
            self._round(folder, kills, until)
            found = results(folder, self.database)
            for part in () if self.refused else expected:
                if found[part] != expected[part]:
                    self.differences.append(f"round {self.rounds}, {part}: {found[part]}"[:2000])
            _say(f"{self.killed.total()} kills, {self.epochs} epochs, {len(self.differences)} differences")

    def _round(self, folder: Path, kills: int, until: float) -> None:
        """One job, from its beginning to its end, through as many deaths as it takes."""
        job = self.job(folder)
        while True:
            job.start()
            while not job.is_over:
                if self.killed.total() < kills and time.monotonic() < until:
                    self._disturb(job)
                else:
                    job.wait(5)
            self.epochs += job.epochs
            job.epochs = 0
            if job.process.returncode == 0:
                job.end()
                return
            if not job.struck:
                self.refused.append(f"after {self.last}:\n{job.end()}")
                return

    def _disturb(self, job: Job) -> None:
        """Kills one part of the job at some moment between two epochs and a few more."""
        way = self.chance.choice(WAYS)
        if self.chance.random() < 0.8:
            # Most kills find the job at work, the others while it starts.
            begun = time.monotonic()
            while not job.is_over and not job.wait(1) and time.monotonic() - begun < _PATIENCE:
                continue
        job.wait(self.chance.uniform(0.0, 2.5))
        if job.is_over:
            return
        parts = parts_of(job.process.pid)
        if not self._strike(way, job.process.pid, parts):
            return
        self.killed[way] += 1
        self.last = f"{way} of {job.process.pid} with {parts} at {time.strftime('%H:%M:%S')}"
        if way in FATAL:
            job.struck = True
            job.process.wait(_PATIENCE)
            end(parts)

    def _strike(self, way: str, driver: int, parts: dict[str, list[int]]) -> bool:
        """Whether there was anybody to kill."""
        if way in ("driver", "term"):
            return kill(driver, signal.SIGTERM if way == "term" else signal.SIGKILL)
        if way == "all Python":
            found = [kill(pid) for pid in (*parts["daemon"], *parts["worker"])]
            return any(found)
        return bool(parts[way]) and kill(self.chance.choice(parts[way]))


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def database(given: str, root: str) -> Iterator[str]:
    if given:
        yield given
    elif programs() is None:
        yield f"jdbc:sqlite:{root}/results.db"
    else:
        with server() as running:
            yield running.url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--epochs", type=int, default=60, help="of one life of the job")
    parser.add_argument("--database", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, database(given.database, root) as url:
        proof = Proof(Path(root), url, random.Random(given.seed))
        proof.run(given.kills, given.epochs, 60 * given.minutes)
    report = {
        "kills": proof.killed.total(),
        "by way": dict(proof.killed),
        "rounds": proof.rounds,
        "epochs": proof.epochs,
        "refused": proof.refused,
        "differences": proof.differences,
    }
    print(json.dumps(report, indent=1))
    sys.exit(1 if proof.refused or proof.differences else 0)


if __name__ == "__main__":
    main()
