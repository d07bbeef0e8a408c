"""Speed of the group-aggregate kernel alone: rows per second of processor time, and where it goes.

Run: ``python -m bench.kernel_group_aggregate [rows per epoch] [keys] [epochs]``. Synthetic tables, one
partition, state in a temporary directory. Phases are cumulative times of the functions named.
"""

from __future__ import annotations

import cProfile
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.state.store import StateStore

PHASES = {
    "group": ("grouped",),
    "lookup": ("lookup", "_stored"),
    "merge+write": ("flush",),
    "changes": ("_show",),
}


def _call(function: str, arg: str | None, distinct: bool = False) -> AggregateSpec:
    kind = pa.int64()
    args = () if arg is None else (arg,)
    name = f"{function}_{arg}_{distinct}"
    return AggregateSpec(
        function=function, args=args, arg_types=(kind,) * len(args), result=kind, name=name, distinct=distinct
    )


def _numbers(rng: np.random.Generator, rows: int, keys: int) -> pa.Table:
    return pa.table({"k": rng.integers(0, keys, rows), "v": rng.integers(0, 1000, rows)})


def _texts(rng: np.random.Generator, rows: int, keys: int) -> pa.Table:
    k = pa.array(rng.integers(0, keys, rows)).cast(pa.string())
    return pa.table({"k": pc.binary_join_element_wise("key-", k, ""), "v": rng.integers(0, 1000, rows)})


def _retracting(rng: np.random.Generator, rows: int, keys: int) -> pa.Table:
    """Every tenth row takes back the row before it; the others come to stay."""
    k, v = rng.integers(0, keys, rows), rng.integers(0, 1000, rows)
    kinds = np.zeros(rows, np.int8)
    kinds[9::10] = 3
    k[9::10], v[9::10] = k[8::10], v[8::10]
    return pa.table({"k": k, "v": v, "$kind": kinds})


def _users(rng: np.random.Generator, rows: int, keys: int) -> pa.Table:
    return pa.table({"k": rng.integers(0, 10, rows), "v": rng.integers(0, 2 * keys, rows)})


THREE = (_call("COUNT", None), _call("SUM", "v"), _call("MAX", "v"))
CASES: dict[str, tuple[Callable[..., pa.Table], pa.DataType, tuple[AggregateSpec, ...], bool, int]] = {
    "count, sum, max by bigint": (_numbers, pa.int64(), THREE, False, 0),
    "count, sum, avg by text": (_texts, pa.string(), (*THREE[:2], _call("AVG", "v")), False, 0),
    "count, sum, avg, retracting": (_retracting, pa.int64(), (*THREE[:2], _call("AVG", "v")), True, 0),
    "count, sum, max, 10 keys": (_numbers, pa.int64(), THREE, False, 10),
    "max, retracting": (_retracting, pa.int64(), (THREE[2],), True, 0),
    "count distinct": (_users, pa.int64(), (_call("COUNT", "v", True),), False, 0),
}


def measure(name: str, rows: int, keys: int, epochs: int) -> None:
    make, kind, calls, retracts, own_keys = CASES[name]
    spec = GroupAggregateSpec(keys=(("k", kind),), calls=calls, retracts=retracts)
    root, manifest = tempfile.mkdtemp(), None
    rng = np.random.default_rng(7)
    seconds: list[float] = []
    cpu: list[float] = []
    profile = cProfile.Profile()
    for epoch in range(epochs):
        table = make(rng, rows, own_keys or keys)
        start, busy = time.perf_counter(), time.process_time()
        if epoch > 0:
            profile.enable()
        store = StateStore.open(root, "aggregate", 0, manifest, epoch)
        spec.step((table,), store, EpochContext(epoch=epoch, time=0, partition=0))
        manifest = store.flush()
        profile.disable()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    shutil.rmtree(root)
    steady, worked = float(np.median(seconds[1:])), float(np.median(cpu[1:]))
    times = f"{steady * 1000:5.0f} ms/epoch, {worked * 1000:5.0f} ms of them working"
    print(f"{name:30s} {rows / worked / 1e6:6.2f} M rows/s  {times}  {_shares(profile)}")


def _shares(profile: cProfile.Profile) -> str:
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in stats.values())
    parts = []
    for phase, names in PHASES.items():
        spent = sum(
            e[3] for (file, _, function), e in stats.items() if function in names and "tidemill" in file
        )
        parts.append(f"{phase} {100 * spent / total:.0f}%")
    return ", ".join(parts)


def main() -> None:
    rows, keys, epochs = (int(a) for a in (sys.argv[1:] + ["500000", "500000", "6"][len(sys.argv) - 1 :]))
    for name in CASES:
        measure(name, rows, keys, epochs)


if __name__ == "__main__":
    main()
