"""What a reader sees of a table of files: hidden files and folders do not count."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from tests.runtime.running import Row


def lines(folder: Path) -> list[str]:
    """All lines, sorted."""
    shown = []
    for place, folders, names in os.walk(folder):
        # What is hidden is not looked into: it comes and goes while it is read.
        folders[:] = [name for name in folders if name[0] not in "._"]
        shown += [Path(place, name) for name in names if name[0] not in "._"]
    return sorted(line for file in shown for line in file.read_text().splitlines())


def rows(folder: Path, *columns: str) -> Counter[Row]:
    """What the changes of a debezium-json table add up to."""
    return added_up(lines(folder), *columns)


def added_up(changes: list[str], *columns: str) -> Counter[Row]:
    """What lines of debezium-json do; fails where more is taken away than was there."""
    found: Counter[Row] = Counter()
    for line in changes:
        message = json.loads(line)
        for image, weight in ((message["before"], -1), (message["after"], 1)):
            if image is not None:
                found[tuple(image[c] for c in columns)] += weight
    assert all(weight >= 0 for weight in found.values()), found
    return +found
