"""The processes of a job: its driver, Spark's JVM, the daemon of Python workers and these themselves."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_DAEMON = b"worker_daemon"


def children(root: int) -> dict[int, int]:
    """All processes below ``root``, each with its parent."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below = {root}
    while more := {p for p, parent in parents.items() if parent in below} - below:
        below |= more
    return {p: parents[p] for p in below - {root}}


def parts_of(driver: int) -> dict[str, list[int]]:
    """The processes of the job that ``driver`` runs: ``jvm``, ``daemon`` and ``worker``."""
    found: dict[str, list[int]] = {"jvm": [], "daemon": [], "worker": []}
    below = children(driver)
    daemons = {p for p in below if _DAEMON in _command(p)}
    for pid, parent in below.items():
        if pid in daemons:
            # Workers are forks of the daemon and share its command line.
            found["worker" if parent in daemons else "daemon"].append(pid)
        elif _command(pid).split(b"\0")[0].endswith(b"java"):
            found["jvm"].append(pid)
    return found


def kill(pid: int, with_signal: signal.Signals = signal.SIGKILL) -> bool:
    """Whether the process was there to be killed."""
    try:
        os.kill(pid, with_signal)
    except ProcessLookupError:
        return False
    return True


def end(parts: dict[str, list[int]]) -> None:
    """Kills what is left of a job whose driver is gone; a number that is another process's now is let be."""
    for kind, pids in parts.items():
        for pid in pids:
            if (b"java" if kind == "jvm" else _DAEMON) in _command(pid):
                kill(pid)


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
