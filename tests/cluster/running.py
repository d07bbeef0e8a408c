"""``tidemill run`` of the join job in a process of its own, started again as a supervisor would."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.join_job import SCRIPT

_SECONDS = 600


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
    """``folder``: of its tables and its checkpoint. ``failures``: its log whenever it ended by itself."""

    master: str
    folder: Path
    options: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _seen: frozenset[str] = frozenset()

    def start(self) -> None:
        script = self.folder / "job.sql"
        script.write_text(SCRIPT.format(place=self.folder))
        shared = f"tidemill.shared-filesystem={self.folder}"
        given = [arg for option in (*self.options, shared) for arg in ("-D", option)]
        environment = packed_environment(self.folder, sys.executable)
        command = [sys.executable, "-m", "tidemill", "run", str(script), "--master", self.master]
        command += ["--py-env", str(environment)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--checkpoint-dir", str(self.folder / "checkpoint"), *given],
                cwd=self.folder,
                env={**os.environ, **self.environment},
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
        raise AssertionError(f"no new record in {_SECONDS} s: {self.log()}")

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def _status(self) -> int | None:
        """Of the job's process; one that failed is started again."""
        assert self._process is not None
        status = self._process.poll()
        if status is not None and status > 0:
            self.failures.append(self.log())
        if status:
            self.start()
            return None
        return status
