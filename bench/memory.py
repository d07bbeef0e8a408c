"""What a process and everything below it take of the machine, from /proc: peak memory, processor time."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

INTERVAL_SECONDS = 0.25
_TREE_SECONDS = 1.0
"""How often processes are looked for."""
_PLATEAU_SECONDS = 2.0
_GROWTH = 1.02


@dataclass(slots=True)
class Peak:
    """Highest sum of proportional set sizes seen, in bytes."""

    bytes: int = 0


@contextlib.contextmanager
def peak_tree_memory(pid: int) -> Iterator[Peak]:
    """Samples while the block runs. Shared pages count once (PSS), mapped files included."""
    sampler, stop = _Sampler(pid), threading.Event()

    def sample() -> None:
        while not stop.wait(INTERVAL_SECONDS):
            sampler.sample(time.monotonic())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield sampler.peak
    finally:
        stop.set()
        thread.join()


@dataclass(slots=True)
class _Sampler:
    """What counts shared pages once walks all pages of a process, while that waits for it. So it is asked for
    only where the resident sizes, which cost nothing and are never less, may mean a new peak: when they have
    grown, and from time to time while they stay."""

    root: int
    peak: Peak = field(default_factory=Peak)
    _tree: set[int] = field(default_factory=set)
    _listed: float = -math.inf
    _walked: float = -math.inf
    _highest: float = 0

    def sample(self, now: float) -> None:
        """At ``now``, in seconds."""
        if now >= self._listed + _TREE_SECONDS:
            self._tree, self._listed = _tree(self.root), now
        resident = sum(map(_resident, self._tree))
        grown = resident > _GROWTH * self._highest
        if resident > self.peak.bytes and (grown or now >= self._walked + _PLATEAU_SECONDS):
            self.peak.bytes = max(self.peak.bytes, sum(map(_pss, self._tree)))
            self._walked, self._highest = now, max(self._highest, resident)


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


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
