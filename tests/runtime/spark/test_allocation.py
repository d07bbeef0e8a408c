"""Workers keep the memory that their arrays leave."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource
from tidemill.runtime.spark.allocation import keep_freed_memory
kept = keep_freed_memory()
import numpy as np
np.ones(2_000_000)
begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(2_000_000)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun)
"""

ARROW = """
import time
from pathlib import Path
from tidemill.runtime.spark.allocation import keep_freed_memory
kept = keep_freed_memory()
import pyarrow as pa
import pyarrow.compute as pc
pc.random(25_000_000)
for _ in range(2):  # freed pages are given back when Arrow allocates again
    time.sleep(0.5)
    pa.allocate_buffer(1_000_000)
print(kept, int(Path("/proc/self/statm").read_text().split()[1]) // 256)
"""


def run(environment: dict[str, str], script: str = FAULTS) -> tuple[str, int]:
    """The answer of ``keep_freed_memory``, and a figure: with FAULTS the pages that fifty arrays of 3,907
    pages asked for, with ARROW the resident MiB after an array of 200 MB is gone."""
    mine = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES" and "MALLOC_" not in k}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**mine, "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, figure = done.stdout.split()
    return kept, int(figure)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system's C library has other names")
def test_arrays_come_from_memory_that_others_left() -> None:
    kept, faults = run({})
    assert kept == "True"
    assert faults < 4_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system's C library has other names")
def test_the_environment_has_the_last_word() -> None:
    kept, faults = run({"MALLOC_MMAP_THRESHOLD_": "131072"})
    assert kept == "False"
    assert faults > 100_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_arrow_keeps_freed_memory_too() -> None:
    assert run({}, ARROW)[1] > 200
    assert run({"MIMALLOC_PURGE_DELAY": "0"}, ARROW)[1] < 200
