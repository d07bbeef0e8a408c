"""TPC-H in batch mode beside real Flink 2.3.0: ``python -m bench.flink_batch [--scale 1] [--runs 2] q1 q6``.

Both read the same CSV files, the one format that Flink reads without more jars, with two tasks at a time.
Each side runs all queries in one process, every one once to warm up and then ``--runs`` times; the best
counts, from submission to the last row. The answers must have as many rows.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.csv as pc
import pyarrow.parquet as pq

from bench.compare import ORACLE
from bench.tpch import DATA
from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables
from tidemill.session.environment import TableEnvironment

SETUP = {
    "execution.runtime-mode": "batch",
    "parallelism.default": "2",
    "table.exec.resource.default-parallelism": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    seconds: float
    rows: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*", default=list(QUERIES))
    given = parser.parse_args()
    tables = create_tables(csv_files(given.scale), "csv")
    chosen = {name: QUERIES[name] for name in given.queries}
    ours = run_tidemill(tables, chosen, given.runs, given.memory)
    theirs = run_flink(tables, chosen, given.runs)
    print(f"{'query':6} {'flink':>8} {'tidemill':>9} {'speed-up':>9}")
    ratios = []
    for name in chosen:
        if ours[name].rows != theirs[name].rows:
            raise SystemExit(f"{name}: the answers differ: {ours[name].rows} rows, Flink {theirs[name].rows}")
        ratios.append(theirs[name].seconds / ours[name].seconds)
        print(f"{name:6} {theirs[name].seconds:8.2f} {ours[name].seconds:9.2f} {ratios[-1]:9.2f}")
    print(f"{'mean':6} {math.exp(sum(map(math.log, ratios)) / len(ratios)):28.2f}")


def csv_files(scale: float) -> Path:
    """The folder of the tables as CSV, written from the Parquet files once."""
    source, target = DATA / f"scale-{scale}", DATA / f"scale-{scale}-csv"
    if not source.exists():
        write(source, scale)
    for name in TABLES:
        if not (target / name).exists():
            table = pq.read_table(source / name)
            (target / name).mkdir(parents=True)
            options = pc.WriteOptions(include_header=False, quoting_style="needed")
            pc.write_csv(table, target / name / "part-0.csv", options)
    return target


def run_tidemill(
    tables: Iterable[str], queries: Mapping[str, str], runs: int, memory: str
) -> dict[str, Best]:
    environment = TableEnvironment.create(
        {"execution.runtime-mode": "batch", "spark.master": "local[2]", "spark.driver.memory": memory}
    )
    for text in tables:
        environment.execute_sql(text)

    def rows_of(query: str) -> int:
        return sum(1 for _ in environment.execute_sql(query).collect())

    return {name: best_of(partial(rows_of, query), runs) for name, query in queries.items()}


def best_of(run: Callable[[], int], runs: int) -> Best:
    times = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        rows = run()
        times.append(time.perf_counter() - begun)
    return Best(seconds=min(times[1:]), rows=rows)


def run_flink(tables: Iterable[str], queries: Mapping[str, str], runs: int) -> dict[str, Best]:
    """Each query as a script of its own, all in one JVM."""
    with tempfile.TemporaryDirectory() as folder:
        scripts = []
        for name, query in queries.items():
            script = Path(folder) / f"{name}.sql"
            script.write_text(";\n".join([*tables, *[query] * (runs + 1)]) + ";\n")
            scripts.append(str(script))
        settings = [part for key, value in SETUP.items() for part in ("-D", f"{key}={value}")]
        command = [ORACLE, "run", "--perf", "--timeout", "600", *settings, *scripts]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {name: _best(answer, runs) for name, answer in zip(queries, answers, strict=True)}


def _best(answer: Mapping[str, Any], runs: int) -> Best:
    found = [one for one in answer["statements"] if one.get("kind") == "query"][-runs:]
    return Best(seconds=min(one["elapsed_ms"] for one in found) / 1000, rows=len(found[-1]["rows"]))


if __name__ == "__main__":
    main()
