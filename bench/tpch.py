"""TPC-H in batch mode against plain Spark SQL, over the same Parquet files in one process.

    python -m bench.tpch --scale 1 --memory 3g q2 q8 q9

Every query runs once to warm up and ``--runs`` times measured, the two sides in turn; the best wall time
counts. The answers must have the same number of rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables
from tidemill.session.environment import TableEnvironment

DATA = Path("/tmp/tidemill-tpch")


def seconds(run: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    rows = run()
    return time.perf_counter() - started, rows


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
    print(f"{'query':6} {'plain':>8} {'tidemill':>9} {'ratio':>6}")
    for name in given.queries:
        compare(name, environment, spark, given.runs)


def compare(name: str, environment: TableEnvironment, spark: SparkSession, runs: int) -> None:
    def plain() -> int:
        return int(spark.sql(QUERIES[name]).toArrow().num_rows)

    def own() -> int:
        return sum(1 for _ in environment.execute_sql(QUERIES[name]).collect())

    if plain() != own():
        raise SystemExit(f"{name}: the answers differ")
    times = [(seconds(plain)[0], seconds(own)[0]) for _ in range(runs)]
    first, second = (min(side) for side in zip(*times, strict=True))
    print(f"{name:6} {first:8.2f} {second:9.2f} {second / first:6.2f}", flush=True)


if __name__ == "__main__":
    main()
