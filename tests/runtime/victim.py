"""A job in a process of its own, to be killed: ``python -m tests.runtime.victim FOLDER STEP TIME ROWS``.

At the TIME-th time that STEP is reached the process kills itself with SIGKILL; epochs have ROWS
rows. With the step ``workers`` it kills its Python workers each time an epoch was planned, and goes on.
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

killed: list[int] = []
"""Workers that this process has killed."""


def main() -> None:
    folder, step, time, rows = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    options = {
        "tidemill.epoch.max-rows": rows,
        "execution.checkpointing.dir": str(folder / "checkpoint"),
        "parallelism.default": "2",
    }
    fault = kill_workers if step == "workers" else kill_self(step, time)
    Session(options, fault).execute(*statements(folder), INSERTS)
    if step == "workers" and not killed:
        sys.exit("no worker was killed")


def kill_self(step: str, time: int) -> Callable[[str], None]:
    seen = Counter[str]()

    def fault(reached: str) -> None:
        seen[reached] += 1
        if reached == step and seen[reached] == time:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def kill_workers(reached: str) -> None:
    if reached == "planned":
        for pid in parts_of(os.getpid())["worker"]:
            killed.append(pid)
            kill(pid)


if __name__ == "__main__":
    main()
