"""TPC-H in batch mode against plain Spark SQL, over the same Parquet files in one process.

    python -m bench.tpch --scale 1 --memory 3g q2 q8 q9

Every query runs once to warm up and ``--runs`` times measured, the two sides in turn; the best counts, of the
wall's time and of the processors' (driver, JVM, Python workers). The answers must have the same number of
rows.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bench.memory import processor_seconds
from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables
from tidemill.session.environment import TableEnvironment

DATA = Path("/tmp/tidemill-tpch")


Seconds = tuple[float, float]
"""By the wall's clock, and of processors."""


def seconds(run: Callable[[], int]) -> Seconds:
    busy, started = processor_seconds(os.getpid()), time.perf_counter()
    run()
    return time.perf_counter() - started, processor_seconds(os.getpid()) - busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="3g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*", default=list(QUERIES))
    given = parser.parse_args()
    folder = DATA / f"scale-{given.scale}"
    if not folder.exists():
        write(folder, given.scale)
    environment = TableEnvironment.create(
        {"execution.runtime-mode": "batch", "spark.driver.memory": given.memory}
    )
    for text in create_tables(folder):
        environment.execute_sql(text)
    environment.execute_sql("SELECT COUNT(*) FROM nation").wait()
    spark = SparkSession.builder.getOrCreate().newSession()
    for name in TABLES:
        spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    print(f"{'':6} {'by the wall':^25} {'of processors':^25}")
    print(f"{'query':6}" + f" {'plain':>8} {'tidemill':>9} {'ratio':>6}" * 2)
    ratios = [compare(name, environment, spark, given.runs) for name in given.queries]
    means = [math.exp(sum(map(math.log, side)) / len(side)) for side in zip(*ratios, strict=True)]
    print(f"{'mean':6}" + "".join(f"{mean:26.2f}" for mean in means))


def compare(name: str, environment: TableEnvironment, spark: SparkSession, runs: int) -> Seconds:
    """Prints a line; how many times plain Spark's seconds ours are."""

    def plain() -> int:
        return int(spark.sql(QUERIES[name]).toArrow().num_rows)

    def own() -> int:
        return sum(1 for _ in environment.execute_sql(QUERIES[name]).collect())

    if plain() != own():
        raise SystemExit(f"{name}: the answers differ")
    times = [(*seconds(plain), *seconds(own)) for _ in range(runs)]
    wall, busy, own_wall, own_busy = (min(side) for side in zip(*times, strict=True))
    ratios = own_wall / wall, own_busy / max(busy, 0.01)
    print(
        f"{name:6} {wall:8.2f} {own_wall:9.2f} {ratios[0]:6.2f} {busy:8.2f} {own_busy:9.2f} {ratios[1]:6.2f}",
        flush=True,
    )
    return ratios


if __name__ == "__main__":
    main()
