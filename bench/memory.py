"""What a process and everything below it take of the machine, from /proc: peak memory, processor time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INTERVAL_SECONDS = 0.2


@dataclass(slots=True)
class Peak:
    """Highest sum of proportional set sizes seen, in bytes."""

    bytes: int = 0


@contextlib.contextmanager
def peak_tree_rss(pid: int) -> Iterator[Peak]:
    """Samples while the block runs. Shared pages count once (PSS), mapped files included."""
    peak, stop = Peak(), threading.Event()

    def sample() -> None:
        while not stop.wait(INTERVAL_SECONDS):
            peak.bytes = max(peak.bytes, sum(map(_pss, _tree(pid))))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def processor_seconds(pid: int) -> float:
    """Of the processes that are there, and of those that they have waited for."""
    ticks = 0
    for process in _tree(pid):
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    tree = {root}
    while more := {p for p, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return tree


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
