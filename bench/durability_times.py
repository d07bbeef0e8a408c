"""Python workers that note how long checksums and fsync take, and how a driver does the same.

Spark runs this module in place of the workers' daemon where ``bench.durability`` says so. Each process has a
file in ``$TIDEMILL_TIMES``: workers are killed, so it is written at each call.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import xxhash
from pyspark import daemon

from tidemill.runtime.spark.worker_daemon import WARM

FOLDER = "TIDEMILL_TIMES"
_TIMES = struct.Struct("dd")
_CHECKSUM, _FSYNC = range(2)
_spent: dict[int, list[float]] = {}
"""By process: a fork begins anew."""


def install() -> None:
    """From here on this process and its forks note their times."""
    replaced: dict[Any, tuple[tuple[str, int], ...]] = {
        os: (("fsync", _FSYNC),),
        xxhash: (("xxh3_64_intdigest", _CHECKSUM), ("xxh3_64_hexdigest", _CHECKSUM)),
    }
    for module, functions in replaced.items():
        for name, kind in functions:
            setattr(module, name, _timed(kind, getattr(module, name)))
    library: Any = xxhash
    library.xxh3_64 = _Sum


def spent(folder: Path) -> tuple[float, float]:
    """Seconds of checksums and of fsync in all processes until now."""
    found = [_TIMES.unpack(file.read_bytes()) for file in folder.iterdir()]
    return sum(f[_CHECKSUM] for f in found), sum(f[_FSYNC] for f in found)


def _timed(kind: int, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        begun = time.perf_counter()
        try:
            return function(*given)
        finally:
            _note(kind, time.perf_counter() - begun)

    return run


def _note(kind: int, seconds: float) -> None:
    mine = _spent.setdefault(os.getpid(), [0.0, 0.0])
    mine[kind] += seconds
    Path(os.environ[FOLDER], str(os.getpid())).write_bytes(_TIMES.pack(*mine))


class _Sum:
    """A running checksum."""

    def __init__(self, *given: Any) -> None:
        made = _WHOLE(*given)
        self.update = _timed(_CHECKSUM, made.update)
        self.intdigest = made.intdigest


_WHOLE = xxhash.xxh3_64

if __name__ == "__main__":
    for name in WARM:
        import_module(name)
    install()
    daemon.manager()
