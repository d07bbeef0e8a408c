"""What an epoch costs beside many windows that are open: it follows what is touched, not what is kept.

Run: ``python -m bench.open_windows [rows per epoch] [epochs]``. The kernels alone, one partition, state in a
temporary directory. Of each size: windows open before, and the median milliseconds of an epoch that adds to
some of them and in which none ends.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidemill.changelog.watermarks import NONE
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.shape import WindowShape
from tidemill.state.store import StateStore

MINUTE = 60_000
HOUR = 60 * MINUTE
_SHAPE = {
    "keys": (("k", pa.int64()),),
    "calls": (AggregateSpec(function="COUNT", args=(), arg_types=(), result=pa.int64(), name="n"),),
    "time": "t",
    "clock": Clock(),
    "columns": WindowColumns(start="s", end="e"),
    "output": ("k", "n", "s", "e"),
}
SESSIONS = SessionAggregateSpec(**_SHAPE, gap=HOUR)  # type: ignore[arg-type]
HOPS = WindowAggregateSpec(**_SHAPE, windows=Hop(size=10 * MINUTE, slide=MINUTE))  # type: ignore[arg-type]
CASES: tuple[tuple[str, WindowShape, int], ...] = (("SESSION", SESSIONS, 1), ("HOP 10 by 1", HOPS, 10))


def measure(name: str, spec: WindowShape, keys: int, windows: int, rows: int, epochs: int) -> None:
    root, manifest, mark = tempfile.mkdtemp(), None, NONE
    seconds = []
    for number, table in enumerate(_epochs(keys, rows, epochs)):
        begun = time.perf_counter()
        store = StateStore.open(root, "windows", 0, manifest, number)
        epoch = EpochContext(epoch=number, time=0, partition=0, watermark=number, before=mark)
        assert len(spec.step((table,), store, epoch)) == 0  # type: ignore[attr-defined]
        manifest, mark = store.flush(), number
        seconds.append(time.perf_counter() - begun)
    shutil.rmtree(root)
    steady = float(np.median(seconds[2:])) * 1000
    print(f"{name:12s} {keys * windows:>9,d} open: {steady:6.1f} ms for an epoch of {rows} rows")


def _epochs(keys: int, rows: int, epochs: int) -> Iterator[pa.Table]:
    """First a row of every key, then some of random ones, a millisecond later each."""
    random = np.random.default_rng(7)
    for number in range(epochs + 1):
        chosen = np.arange(keys) if number == 0 else random.choice(keys, min(rows, keys), replace=False)
        times = pa.array(np.full(len(chosen), number * 1000, np.int64)).cast(pa.timestamp("us"))
        numbers = number * keys + np.arange(len(chosen))
        yield pa.table(
            {"k": chosen, "t": times, "$seq": numbers, "$wm": np.full(len(chosen), number - 1, np.int64)}
        )


def main() -> None:
    rows, epochs = (int(a) for a in (sys.argv[1:] + ["100", "40"][len(sys.argv) - 1 :]))
    for name, spec, windows in CASES:
        for keys in (1_000, 10_000, 100_000):
            measure(name, spec, keys, windows, rows, epochs)


if __name__ == "__main__":
    main()
