"""Pipelined exchanges beside blocking ones: ``python -m bench.exchanges [--slots 8] [--rows N] [QUERY]``

The same queries over Parquet in one application with more slots than cores, once to warm up and ``--runs``
times measured, in turns; the best counts.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.plain_spark import seconds
from tidemill.session.environment import TableEnvironment

DATA = Path("/tmp/tidemill-exchanges")
FILES, KEYS = 8, 1_000_003
TABLES = {"visits": "k BIGINT, s STRING, v DOUBLE", "prices": "k BIGINT, w INT"}
QUERIES = {
    "many keys": "SELECT COUNT(*), SUM(n) FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM visits GROUP BY k)",
    "few keys": "SELECT s, COUNT(*) AS n, SUM(v) AS v FROM visits GROUP BY s",
    "distinct": "SELECT s, COUNT(DISTINCT k) AS n FROM visits GROUP BY s",
    "join": "SELECT COUNT(*), SUM(w) FROM visits JOIN prices ON visits.k = prices.k",
    "first ten": "SELECT k, COUNT(*) AS n FROM visits GROUP BY k ORDER BY n DESC, k LIMIT 10",
    "windows": "SELECT SUM(v) FROM (SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS r "
    "FROM visits) WHERE r <= 2",
}
MODES = ("BLOCKING", "PIPELINED")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--memory", default="3g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*", default=list(QUERIES))
    given = parser.parse_args()
    session = over(given.rows, {"spark.master": f"local[{given.slots}]", "spark.driver.memory": given.memory})
    print(f"{'query':12} {'blocking':>9} {'pipelined':>10} {'ratio':>6}")
    ratios = [line(session, name, given.runs) for name in given.queries]
    print(f"{'mean':12} {math.exp(sum(map(math.log, ratios)) / len(ratios)):27.2f}")


def over(rows: int, settings: dict[str, str]) -> TableEnvironment:
    folder = DATA / str(rows)
    if not folder.exists():
        write(folder, rows)
    # Joins exchange both sides.
    options = {"execution.runtime-mode": "batch", "table.optimizer.join.broadcast-threshold": "-1"}
    session = TableEnvironment.create({**options, **settings})
    for name, columns in TABLES.items():
        path = f"'connector' = 'filesystem', 'path' = '{folder}/{name}', 'format' = 'parquet'"
        session.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({path})")
    return session


def write(folder: Path, rows: int) -> None:
    made = np.random.default_rng(7)
    for name in TABLES:
        (folder / name).mkdir(parents=True)
    for number in range(FILES):
        count = rows // FILES
        keys = made.integers(0, KEYS, count)
        visits = {
            "k": keys,
            "s": pa.array([f"s{i}" for i in range(17)]).take(keys % 17),
            "v": made.random(count),
        }
        pq.write_table(pa.table(visits), folder / "visits" / f"{number}.parquet")
        prices = {"k": made.integers(0, KEYS, count // 4), "w": made.integers(0, 100, count // 4, np.int32)}
        pq.write_table(pa.table(prices), folder / "prices" / f"{number}.parquet")


def line(session: TableEnvironment, name: str, runs: int) -> float:
    """Prints a query's times; how many times the blocking run's the pipelined one's is."""
    best = [math.inf, math.inf]
    for run in range(runs + 1):
        for side in (0, 1) if run % 2 == 0 else (1, 0):
            session.execute_sql(f"SET 'execution.batch-shuffle-mode' = 'ALL_EXCHANGES_{MODES[side]}'")
            took, _ = seconds(partial(rows_of, session, name))
            best[side] = min(best[side], took) if run else best[side]
    blocking, pipelined = best
    print(f"{name:12} {blocking:9.2f} {pipelined:10.2f} {pipelined / blocking:6.2f}", flush=True)
    return pipelined / blocking


def rows_of(session: TableEnvironment, name: str) -> int:
    return sum(rows.num_rows for rows in session.execute_sql(QUERIES[name]).tables())


if __name__ == "__main__":
    main()
