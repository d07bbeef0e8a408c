"""Batch queries beside plain Spark SQL, over the same Parquet files in one process.

Every query runs once on either side to warm up and a few times measured; the best counts, of the wall's time
and of the processors' (driver, JVM, Python workers). One of a tenth of a second should be run tens of times,
so long does the JVM compile what it runs, on the same processors. The answers must be the same, in any order.
Both sides share a heap, and one that always ran second would clear away what the first one left (a broadcast
side of a few hundred megabytes): so the heap is cleared before each run, and the sides take turns at being
first.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bench.answers import same_answers
from bench.memory import processor_seconds
from tidemill.session.environment import TableEnvironment

Seconds = tuple[float, float]
"""By the wall's clock, and of processors."""


def seconds(run: Callable[[], object]) -> Seconds:
    busy, started = processor_seconds(os.getpid()), time.perf_counter()
    run()
    return time.perf_counter() - started, processor_seconds(os.getpid()) - busy


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Ours and a Spark session that sees the same tables as views."""

    environment: TableEnvironment
    plain: SparkSession
    queries: Mapping[str, str]

    @classmethod
    def over(
        cls,
        folder: Path,
        tables: Iterable[str],
        ddl: Iterable[str],
        queries: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> Sides:
        """Tables of ``ddl``, in the folders of ``folder`` that have their names."""
        environment = TableEnvironment.create({"execution.runtime-mode": "batch", **settings})
        for text in ddl:
            environment.execute_sql(text)
        environment.execute_sql("SELECT COUNT(*) FROM (VALUES 1) AS t(x)").wait()
        plain = SparkSession.builder.getOrCreate().newSession()
        for name in tables:
            plain.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
        return cls(environment=environment, plain=plain, queries=queries)

    def run_plain(self, name: str) -> pa.Table:
        return self.plain.sql(self.queries[name]).toArrow()

    def run_own(self, name: str) -> pa.Table:
        return pa.concat_tables(self.environment.execute_sql(self.queries[name]).tables())

    def clear(self) -> None:
        jvm: Any = self.plain.sparkContext._jvm
        jvm.System.gc()

    def compared(self, names: Iterable[str], runs: int, at_least: float = 0) -> None:
        """A line for each query, and how many times plain Spark's seconds ours are: in the mean, at most.

        Each side runs ``runs`` times and until it has taken ``at_least`` seconds.
        """
        width = max(6, *map(len, self.queries))
        print(f"{'':{width}} {'by the wall':^25} {'of processors':^25}")
        print(f"{'query':{width}}" + f" {'plain':>8} {'tidemill':>9} {'ratio':>6}" * 2)
        lines = {name: self._line(name, width, runs, at_least) for name in names}
        ratios = [line for line in lines.values() if line is not None]
        for title, of in (("mean", geometric_mean), ("most", max)):
            print(f"{title:{width}}" + "".join(f"{of(side):26.2f}" for side in zip(*ratios, strict=True)))
        differing = [name for name, line in lines.items() if line is None]
        if differing:
            raise SystemExit(f"the answers differ: {', '.join(differing)}")

    def _line(self, name: str, width: int, runs: int, at_least: float) -> Seconds | None:
        """None where the answers differ."""
        if not same_answers(self.run_plain(name), self.run_own(name)):
            return None
        (wall, busy), (own_wall, own_busy) = self._best(name, runs, at_least)
        ratios = own_wall / wall, own_busy / max(busy, 0.01)
        print(
            f"{name:{width}} {wall:8.2f} {own_wall:9.2f} {ratios[0]:6.2f}"
            f" {busy:8.2f} {own_busy:9.2f} {ratios[1]:6.2f}",
            flush=True,
        )
        return ratios

    def _best(self, name: str, runs: int, at_least: float) -> list[Seconds]:
        """Of plain Spark, and ours."""
        sides = partial(self.run_plain, name), partial(self.run_own, name)
        times: tuple[list[Seconds], ...] = ([], [])
        while len(times[0]) < runs or min(sum(wall for wall, _ in each) for each in times) < at_least:
            for side in (0, 1) if len(times[0]) % 2 == 0 else (1, 0):
                self.clear()
                times[side].append(seconds(sides[side]))
        return [(min(wall for wall, _ in each), min(busy for _, busy in each)) for each in times]
