"""A job in a process of its own, to be killed: ``python -m tests.runtime.victim FOLDER STEP TIME ROWS``.

At the TIME-th time that STEP is reached the process kills itself with SIGKILL; epochs have ROWS
rows. With the step ``workers`` it kills its Python workers each time an epoch was planned, and goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.runtime.running import Session
from tests.runtime.test_recovery import INSERTS, statements


def main() -> None:
    folder, step, time, rows = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    options = {
        "tidemill.epoch.max-rows": rows,
        "execution.checkpointing.dir": str(folder / "checkpoint"),
        "parallelism.default": "2",
    }
    fault = kill_workers if step == "workers" else kill_self(step, time)
    Session(options, fault).execute(*statements(folder), INSERTS)


def kill_self(step: str, time: int) -> Callable[[str], None]:
    seen = Counter[str]()

    def fault(reached: str) -> None:
        seen[reached] += 1
        if reached == step and seen[reached] == time:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def kill_workers(reached: str) -> None:
    if reached == "planned":
        for pid in _descendants(os.getpid()):
            command = Path(f"/proc/{pid}/cmdline")
            with contextlib.suppress(OSError):
                if b"pyspark.daemon" in command.read_bytes() and _parent_is_daemon(pid):
                    os.kill(pid, signal.SIGKILL)


def _parent_is_daemon(pid: int) -> bool:
    """Workers are forks of the daemon and share its command line."""
    parent = _parents().get(pid, 0)
    return b"pyspark.daemon" in Path(f"/proc/{parent}/cmdline").read_bytes()


def _parents() -> dict[int, int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return parents


def _descendants(root: int) -> set[int]:
    parents, tree = _parents(), {root}
    while more := {p for p, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree - {root}


if __name__ == "__main__":
    main()
