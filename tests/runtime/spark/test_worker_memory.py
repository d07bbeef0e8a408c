"""Workers keep the memory that their arrays leave."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FAULTS = """
import resource
from tidemill.runtime.spark.worker_daemon import keep_freed_memory
kept = keep_freed_memory()
import numpy as np
np.ones(2_000_000)
begun = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(2_000_000)
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begun)
"""


def run(environment: dict[str, str]) -> tuple[str, int]:
    """What ``keep_freed_memory`` answered, and how many pages fifty arrays of 3,907 pages asked for."""
    mine = {k: v for k, v in os.environ.items() if k != "GLIBC_TUNABLES" and not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={**mine, "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, faults = done.stdout.split()
    return kept, int(faults)


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
