"""The processes of a job: its driver, Spark's JVM, the daemon of Python workers and these themselves."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_DAEMON = b"tidemill.runtime.spark.worker_daemon"
"""A word of its command; Spark's start script has it within one."""


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
    kinds = {pid: _kind(pid) for pid in below}
    for pid, parent in below.items():
        if kinds[pid] == "daemon":
            # Workers are forks of the daemon and share its command line.
            found["worker" if kinds.get(parent) == "daemon" else "daemon"].append(pid)
        elif kinds[pid]:
            found[kinds[pid]].append(pid)
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
            if _kind(pid) == ("jvm" if kind == "jvm" else "daemon"):
                kill(pid)


def _kind(pid: int) -> str:
    """``jvm``, ``daemon`` (also of its forks), or '' for what else there is, or is no more."""
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if command[0].endswith(b"java"):
            return "jvm"
        return "daemon" if _DAEMON in command else ""
    return ""
