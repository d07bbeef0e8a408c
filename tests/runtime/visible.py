"""What a reader sees of a table of files: hidden files and folders do not count."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.runtime.running import Row


def lines(folder: Path) -> list[str]:
    """All lines, sorted."""
    files = (f for f in folder.rglob("*") if f.is_file())
    shown = (f for f in files if not any(part[0] in "._" for part in f.relative_to(folder).parts))
    return sorted(line for file in shown for line in file.read_text().splitlines())


def rows(folder: Path, *columns: str) -> Counter[Row]:
    """What the changes of a debezium-json table add up to; fails where more is taken away than was there."""
    found: Counter[Row] = Counter()
    for line in lines(folder):
        message = json.loads(line)
        for image, weight in ((message["before"], -1), (message["after"], 1)):
            if image is not None:
                found[tuple(image[c] for c in columns)] += weight
    assert all(weight >= 0 for weight in found.values()), found
    return +found
