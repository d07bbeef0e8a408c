"""TPC-H in batch mode beside real Flink 2.3.0: ``python -m bench.flink_batch [--scale 1] [--runs 2] q1 q6``.

Both read the same CSV files, the one format that Flink reads without more jars, with two tasks at a time.
Each side runs all queries in one process, first ours, each once to warm up and then ``--runs`` times; the
best counts, from submission to the last row, and the processors' time of all processes. A query of Flink's
is ended after ``--patience`` times our seconds, but not before a minute. The answers must have as many rows.

What is found is a line of ``--results`` at once, and what stands there is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq

from bench.memory import processor_seconds
from bench.processor_time import flink, flink_answer
from bench.tpch import DATA
from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables
from tidemill.session.environment import TableEnvironment

SETUP = {
    "execution.runtime-mode": "batch",
    "parallelism.default": "2",
    "table.exec.resource.default-parallelism": "2",
}


LEAST_PATIENCE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """``busy``: of processors. ``cut``: it was ended before its end."""

    seconds: float
    busy: float
    rows: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """What is known, in a file of a JSON object for each query of a side."""

    path: Path

    def known(self, side: str) -> dict[str, Best]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [json.loads(line) for line in lines]
        return {one["query"]: Best(**one["best"]) for one in found if one["side"] == side}

    def add(self, side: str, query: str, best: Best) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"side": side, "query": query, "best": asdict(best)}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--results", type=Path, help="beside the data, unless another is named")
    parser.add_argument("queries", nargs="*", default=list(QUERIES))
    given = parser.parse_args()
    tables = create_tables(csv_files(given.scale), "csv")
    results = Results(given.results or DATA / f"flink-batch-{given.scale}.jsonl")
    ours = results.known("tidemill")
    for name, best in run_tidemill(tables, _others(given.queries, ours), given.runs, given.memory):
        ours[name] = best
        results.add("tidemill", name, best)
        print(f"{name:6} {'':10} {best.seconds:9.2f}", flush=True)
    theirs = results.known("flink")
    patience = {name: max(LEAST_PATIENCE, int(given.patience * ours[name].seconds)) for name in given.queries}
    for name, best in run_flink(tables, _others(given.queries, theirs), given.runs, patience):
        theirs[name] = best
        results.add("flink", name, best)
        print(f"{name:6} {_shown(best):>10}", flush=True)
    _print_table({name: (ours[name], theirs[name]) for name in given.queries})


def _others(names: Iterable[str], known: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(known)]


def _print_table(found: dict[str, tuple[Best, Best]]) -> None:
    """Where Flink's was ended, the ratio is at least what is shown, and so is the mean."""
    print(f"{'':6} {'by the clock':^29} {'of processors':^29}")
    print(f"{'query':6}" + f" {'flink':>10} {'tidemill':>8} {'speed-up':>9}" * 2)
    ratios = []
    for name, (own, other) in found.items():
        if not other.cut and own.rows != other.rows:
            raise SystemExit(f"{name}: the answers differ: {own.rows} rows, Flink {other.rows}")
        sides = (other.seconds, own.seconds), (other.busy, own.busy)
        ratios.append([theirs / ours for theirs, ours in sides])
        least = "> " * other.cut
        shown = [
            f" {f'{least}{theirs:.2f}':>10} {ours:8.2f} {f'{least}{theirs / ours:.2f}':>9}"
            for theirs, ours in sides
        ]
        print(f"{name:6}" + "".join(shown))
    means = [math.exp(sum(map(math.log, side)) / len(side)) for side in zip(*ratios, strict=True)]
    print(f"{'mean':6}" + "".join(f"{mean:30.2f}" for mean in means))


def _shown(best: Best) -> str:
    return f"{'> ' * best.cut}{best.seconds:.2f}"


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
    tables: Iterable[str], queries: Iterable[str], runs: int, memory: str
) -> Iterator[tuple[str, Best]]:
    environment = TableEnvironment.create(
        {"execution.runtime-mode": "batch", "spark.master": "local[2]", "spark.driver.memory": memory}
    )
    for text in tables:
        environment.execute_sql(text)

    for name in queries:

        def run(query: str = QUERIES[name]) -> int:
            return sum(1 for _ in environment.execute_sql(query).collect())

        run()
        yield name, min((_timed(run) for _ in range(runs)), key=lambda best: best.seconds)


def _timed(run: Callable[[], int]) -> Best:
    begun, busy = time.perf_counter(), processor_seconds(os.getpid())
    rows = run()
    return Best(seconds=time.perf_counter() - begun, busy=processor_seconds(os.getpid()) - busy, rows=rows)


def run_flink(
    tables: Iterable[str], queries: list[str], runs: int, patience: dict[str, int]
) -> Iterator[tuple[str, Best]]:
    """Each query as a script of its own, all in one JVM."""
    if not queries:
        return
    declared = list(tables)
    with flink(SETUP) as process:
        for name in queries:
            script = ";\n".join([*declared, QUERIES[name]]) + ";\n"
            found = [_flink_run(process, script, patience[name])]
            while not found[-1].cut and len(found) <= runs:
                found.append(_flink_run(process, script, patience[name]))
            yield name, min(found[-1:] if found[-1].cut else found[1:], key=lambda best: best.seconds)


def _flink_run(process: subprocess.Popen[str], script: str, patience: int) -> Best:
    busy = processor_seconds(process.pid)
    answer = flink_answer(process, script, patience)
    busy = processor_seconds(process.pid) - busy
    query = answer["statements"][-1]
    if "truncated" in query:
        return Best(seconds=patience, busy=busy, cut=True)
    if not answer["ok"]:
        raise SystemExit(f"Flink failed: {query}")
    return Best(seconds=query["elapsed_ms"] / 1000, busy=busy, rows=len(query["rows"]))


if __name__ == "__main__":
    main()
