"""Speed of the join, Top-N, deduplication and OVER kernels alone: rows per second of processor
time, state included.

Run: ``python -m bench.kernel_joins [rows per epoch] [epochs] [case...]``. Synthetic tables, one
partition, state in a temporary directory; with ``profile`` the last epoch's costliest functions.
"""

from __future__ import annotations

import cProfile
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext, OperatorSpec
from tidemill.operators.join.operator import JoinSpec
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.over.operator import OverFunction, OverSpec
from tidemill.operators.over.window import Frame
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rows.ordering import OrderKey
from tidemill.state.store import StateStore

I64 = pa.int64()
Inputs = Iterator[tuple[pa.Table, ...]]
Make = Callable[[np.random.Generator, int, int], tuple[OperatorSpec, Inputs]]


def _side(prefix: str) -> JoinSide:
    names = (f"{prefix}k", f"{prefix}v")
    return JoinSide(columns=tuple((n, I64) for n in names), keys=names[:1], output=names, retracts=True)


def _unique_join(rng: np.random.Generator, rows: int, epochs: int) -> tuple[OperatorSpec, Inputs]:
    """A join of two aggregates on 100 k keys: every key's row is replaced on both sides."""
    keys = min(100_000, rows // 2)
    spec = JoinSpec(kind="INNER", left=_side("l"), right=_side("r"), null_safe=(False,))

    def inputs() -> Inputs:
        held: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        for _ in range(epochs):
            tables = []
            for side in "lr":
                new = rng.integers(0, 10**9, keys)
                old = held.get(side)
                names = np.arange(keys)
                both = (new,) if old is None else (old, new)
                kinds = ([0],) if old is None else ([1], [2])
                tables.append(
                    pa.table(
                        {
                            f"{side}k": np.tile(names, len(both)),
                            f"{side}v": np.concatenate(both),
                            "$kind": pa.array(np.repeat(np.concatenate(kinds), keys).astype(np.int8)),
                        }
                    )
                )
                held[side] = new
            yield tuple(tables)

    return spec, inputs()


def _append_join(rng: np.random.Generator, rows: int, epochs: int) -> tuple[OperatorSpec, Inputs]:
    """Rows of 100 k keys join one dimension row each."""
    keys = 100_000
    left, right = _side("l"), _side("r")
    spec = JoinSpec(kind="INNER", left=left, right=right, null_safe=(False,), insert_only=True)

    def inputs() -> Inputs:
        for epoch in range(epochs):
            facts = pa.table({"lk": rng.integers(0, keys, rows), "lv": rng.integers(0, 10**9, rows)})
            names = np.arange(keys if epoch == 0 else 0)
            yield facts, pa.table({"rk": names, "rv": names})

    return spec, inputs()


def _ranked(rng: np.random.Generator, rows: int, keys: int, epochs: int) -> Inputs:
    for epoch in range(epochs):
        yield (
            pa.table(
                {
                    "k": rng.integers(0, keys, rows),
                    "v": rng.integers(0, 10**9, rows),
                    "w": rng.integers(0, 10**9, rows),
                    "$seq": np.arange(epoch * rows, (epoch + 1) * rows),
                }
            ),
        )


COLUMNS = (("k", I64), ("v", I64), ("w", I64))


def _top_ten(rng: np.random.Generator, rows: int, epochs: int) -> tuple[OperatorSpec, Inputs]:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=(OrderKey("v", False, False),),
        start=1,
        end=10,
    )
    return spec, _ranked(rng, rows, 10_000, epochs)


def _keep_last(rng: np.random.Generator, rows: int, epochs: int) -> tuple[OperatorSpec, Inputs]:
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=COLUMNS,
        partition=("k",),
        order=(),
        start=1,
        end=1,
        latest=True,
        by_place=True,
    )
    return spec, _ranked(rng, rows, 1_000_000, epochs)


def _over(rng: np.random.Generator, rows: int, epochs: int) -> tuple[OperatorSpec, Inputs]:
    """Running sums and rankings of 10 k groups; every epoch touches all of them."""
    order = (OrderKey("v", True, True),)
    upwards = Frame(rows=True, lower=None, upper=0)
    near = Frame(rows=True, lower=-2, upper=2)

    def call(name: str, function: str, args: tuple[str, ...], frame: Frame) -> OverFunction:
        spec = AggregateSpec(
            function=function, args=args, arg_types=(I64,) * len(args), result=I64, name=name
        )
        return OverFunction(call=spec, order=order, frame=frame)

    functions = (
        call("total", "SUM", ("w",), upwards),
        call("near", "SUM", ("w",), near),
        call("most", "MAX", ("w",), upwards),
        call("place", "RANK", (), upwards),
    )
    spec = OverSpec(columns=COLUMNS, partition=("k",), functions=functions)
    return spec, _ranked(rng, rows // 4, 10_000, epochs)


CASES: dict[str, Make] = {
    "join of aggregates, 100 k keys": _unique_join,
    "append-only join, 100 k keys": _append_join,
    "top 10 of 10 k groups": _top_ten,
    "keep last of 1 M keys": _keep_last,
    "OVER on 10 k groups": _over,
}


def measure(make: Make, rows: int, epochs: int, profiled: bool) -> None:
    root = tempfile.mkdtemp()
    spec, inputs = make(np.random.default_rng(7), rows, epochs)
    manifest = None
    for epoch, tables in enumerate(inputs):
        profiler = cProfile.Profile() if profiled and epoch == epochs - 1 else None
        start = time.process_time()
        if profiler:
            profiler.enable()
        store = StateStore.open(root, "bench", 0, manifest, epoch)
        output = spec.step(tables, store, EpochContext(epoch=epoch, time=0, partition=0))
        stepped = time.process_time()
        manifest = store.flush()
        if profiler:
            profiler.disable()
        took, size = time.process_time() - start, sum(t.num_rows for t in tables)
        print(
            f"  epoch {epoch}: {size:>9,} rows in, {output.num_rows:>9,} out, {took:6.3f} s "
            f"(step {stepped - start:.3f}), {size / took:>11,.0f} rows/s"
        )
        if profiler:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(14)
    shutil.rmtree(root)


def main() -> None:
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    words = [a for a in sys.argv[1:] if not a.isdigit()]
    rows, epochs = (*numbers, *(1_000_000, 4)[len(numbers) :])[:2]
    wanted = [w for w in words if w != "profile"]
    for name, make in CASES.items():
        if not wanted or any(w in name for w in wanted):
            print(name)
            measure(make, rows, epochs, "profile" in words)


if __name__ == "__main__":
    main()
