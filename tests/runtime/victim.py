"""A job in a process of its own, to be killed: ``python -m tests.runtime.victim FOLDER STEP TIME ROWS``.

At the TIME-th time that STEP is reached the process kills itself with SIGKILL. Epochs have ROWS rows and are
Spark jobs; ``tests.runtime.spark.resident.victim`` has others. With the step ``workers`` it kills its Python
workers each time an epoch was planned, with ``daemon`` their daemon before them, and goes on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.runtime.processes import kill, parts_of
from tests.runtime.running import Session
from tests.runtime.test_recovery import INSERTS, statements

PYTHON = {"workers": ("worker",), "daemon": ("daemon", "worker")}
killed: list[int] = []
"""Processes that this one has killed."""


def main() -> None:
    folder, step, time, rows = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    options = {
        "tidemill.epoch.max-rows": rows,
        "execution.checkpointing.dir": str(folder / "checkpoint"),
        "parallelism.default": "2",
        "tidemill.epoch.resident": "false",
    }
    fault = kill_python(PYTHON[step]) if step in PYTHON else kill_self(step, time)
    Session(options, fault).execute(*statements(folder), INSERTS)
    if step in PYTHON and not killed:
        sys.exit("no worker was killed")


def kill_self(step: str, time: int) -> Callable[[str], None]:
    seen = Counter[str]()

    def fault(reached: str) -> None:
        seen[reached] += 1
        if reached == step and seen[reached] == time:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def kill_python(kinds: tuple[str, ...]) -> Callable[[str], None]:
    def fault(reached: str) -> None:
        parts = parts_of(os.getpid()) if reached == "planned" else {}
        for pid in (pid for kind in kinds for pid in parts.get(kind, ())):
            killed.append(pid)
            kill(pid)

    return fault


if __name__ == "__main__":
    main()
