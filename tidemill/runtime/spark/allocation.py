"""Memory that a worker's arrays leave is kept for the next ones, not given back to the system at once.

The kernels allocate and free arrays of some megabytes all the time. By default the C library maps each of
them from the system and unmaps it, and the system hands out every page anew, zeroed: up to half of a join's
processor time. Here arrays come from one heap, of which only a large free end is given back. Arrow has an
allocator of its own, mimalloc, which gives freed pages back after a tenth of a second; here it waits for ten
seconds. A worker keeps what its largest epoch needed, until Spark ends it for being idle.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names of malloc.h
_KEPT = 256 << 20
_FROM_HEAP = (512 << 20, 32 << 20)  # older C libraries take no more than the second
_ARROW_KEEPS = "MIMALLOC_PURGE_DELAY", "10000"  # milliseconds


def keep_freed_memory() -> bool:
    """For this process and those it forks, before NumPy and Arrow are imported; whether the C library could
    be told. Variables of the environment that say how memory is to be allocated have the last word."""
    os.environ.setdefault(*_ARROW_KEEPS)
    if "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    # Huge pages would be zeroed whole where a part of one is written.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    with contextlib.suppress(OSError, AttributeError):  # a C library that has no such function
        tell = ctypes.CDLL(None).mallopt
        from_heap = any(tell(_MMAP_THRESHOLD, size) for size in _FROM_HEAP)
        return bool(from_heap and tell(_TRIM_THRESHOLD, _KEPT) and tell(_ARENA_MAX, 1))
    return False
