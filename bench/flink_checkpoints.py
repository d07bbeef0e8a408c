"""The size of a folder's largest complete Flink checkpoint, sampled while a job writes and removes them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INTERVAL_SECONDS = 0.3


@dataclass(slots=True)
class Largest:
    """Bytes of the largest checkpoint seen."""

    bytes: int = 0


@contextlib.contextmanager
def largest_checkpoint(folder: Path) -> Iterator[Largest]:
    """Samples ``folder``/<job>/chk-<n> while the block runs; complete ones hold a ``_metadata``."""
    largest, stop = Largest(), threading.Event()

    def sample() -> None:
        while not stop.wait(INTERVAL_SECONDS):
            with contextlib.suppress(OSError):
                for metadata in folder.glob("*/chk-*/_metadata"):
                    largest.bytes = max(largest.bytes, _size(metadata.parent))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield largest
    finally:
        stop.set()
        thread.join()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
