"""Lookup joins into a PostgreSQL table: rows per second and requests, with the MINI_BATCH hint and without,
beside one request a row.

``python -m bench.lookups [--rows N] [--keys N] [--size N]`` prints a Markdown table. The database
has ``--keys`` rows and a primary key; the left rows ask for random keys, of which a third is not there. One
request a row is a prepared statement over one open connection, without a join around it, of as many rows as
fit into some seconds. The server is one of its own, as the tests start it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from tests.connectors.postgres import Server, server
from tidemill.session.environment import TableEnvironment

JOIN = "(SELECT *, PROCTIME() AS now FROM orders) AS o LEFT JOIN goods FOR SYSTEM_TIME AS OF o.now AS g"
SECONDS = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=10_000, help="of the hint's bundles")
    args = parser.parse_args()
    print("| | rows | requests | rows/s |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, server() as running:
        fill(running, args.keys)
        orders = make(Path(folder) / "orders.csv", args.rows, args.keys)
        joined(running, make(Path(folder) / "few.csv", 1_000, args.keys), "", 1_000)  # starts Spark
        shown("one request a row", *one_by_one(running, args.keys))
        for size in (args.size, 10 * args.size):
            hint = f"/*+ MINI_BATCH('size'='{size}') */"
            shown(f"MINI_BATCH('size'='{size}')", *joined(running, orders, hint, args.rows))
        shown("without a hint", *joined(running, orders, "", args.rows))


def shown(name: str, rows: int, requests: int, seconds: float) -> None:
    print(f"| {name} | {rows:,} | {requests:,} | {rows / seconds:,.0f} |", flush=True)


def fill(running: Server, keys: int) -> None:
    with running.connect() as open:
        open.execute(
            "CREATE TABLE goods AS SELECT id, 'name ' || id AS name, (id % 9999)::numeric(10, 2) / 7 AS price"
            f" FROM generate_series(1, {keys}) AS id".encode()
        )
        open.execute("ALTER TABLE goods ADD PRIMARY KEY (id)")
        open.execute("VACUUM ANALYZE goods")


def make(path: Path, rows: int, keys: int) -> Path:
    random = np.random.default_rng(7)
    wanted = random.integers(1, keys + keys // 2, rows)
    csv.write_csv(
        pa.table({"id": np.arange(rows), "good": wanted}), path, csv.WriteOptions(include_header=False)
    )
    return path


def one_by_one(running: Server, keys: int) -> tuple[int, int, float]:
    wanted = np.random.default_rng(8).integers(1, keys + keys // 2, 1_000_000).tolist()
    rows = 0
    with running.connect() as open, open.cursor() as cursor:
        begun = time.perf_counter()
        while time.perf_counter() - begun < SECONDS:
            cursor.execute("SELECT id, name, price FROM goods WHERE id = %s", (wanted[rows],))
            cursor.fetchall()
            rows += 1
        return rows, rows, time.perf_counter() - begun


def joined(running: Server, orders: Path, hint: str, rows: int) -> tuple[int, int, float]:
    environment = TableEnvironment.create()
    requests: list[int] = []
    environment.context.on_progress = lambda epoch: requests.append(epoch.requests)
    goods = f"'connector' = 'jdbc', 'url' = '{running.url}', 'table-name' = 'goods'"
    for statement in (
        f"CREATE TABLE orders (id BIGINT, good BIGINT) WITH ('connector' = 'filesystem', 'path' = '{orders}',"
        " 'format' = 'csv')",
        "CREATE TABLE goods (id BIGINT, name STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)"
        f" WITH ({goods})",
        "CREATE TABLE snk (id BIGINT, name STRING, price DECIMAL(10, 2)) WITH ('connector' = 'blackhole')",
    ):
        environment.execute_sql(statement).wait()
    begun = time.perf_counter()
    insert = f"INSERT INTO snk SELECT {hint} o.id, g.name, g.price FROM {JOIN} ON o.good = g.id"
    environment.execute_sql(insert).wait()
    return rows, sum(requests), time.perf_counter() - begun


if __name__ == "__main__":
    main()
