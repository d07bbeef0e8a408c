"""Which splits of sources have rows, and which are not waited for: those that had none for the timeout."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.changelog.watermarks import split_key
from tidemill.connectors.api import Offset, SplitSource

Timed = Mapping[str, tuple[SplitSource, int]]
"""By id, sources with the timeout of their splits in ms, 0 for none."""


def busy_splits(sources: Timed, start: Mapping[str, Offset | None], end: Mapping[str, Offset]) -> set[str]:
    """Keys of those that have rows between two offsets."""
    return {
        split_key(source, name)
        for source, (made, _) in sources.items()
        for _, name in made.splits(start[source], end[source]).read
    }


def idle_splits(
    sources: Timed,
    start: Mapping[str, Offset | None],
    end: Mapping[str, Offset],
    active: Mapping[str, int],
    now: int,
) -> set[str]:
    """``active``: when splits and sources had rows last, in ms."""
    busy = busy_splits(sources, start, end)
    found = set()
    for source, (made, timeout) in sources.items():
        for name in made.splits(start[source], end[source]).names if timeout else ():
            key = split_key(source, name)
            if key not in busy and active.get(key, 0) + timeout <= now:
                found.add(key)
    return found
