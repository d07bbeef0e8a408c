"""Rows per second of INSERT INTO a PostgreSQL table against the practical limit: the same CSV file sent
by psycopg with COPY into a temporary table and merged from there by one statement.

``python -m bench.jdbc [--rows N] [--repeat N]`` prints one row of a Markdown table. Half of the rows
update a row that is there, half are new. Each side runs once over a small file first; the best of
``--repeat`` counts, alternating. The server is one of its own, as the tests start it (fsync off for
both sides).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from tests.connectors.postgres import server
from tidemill.session.environment import TableEnvironment

CHUNK = 1 << 20
COLUMNS = {
    "id": ("BIGINT", "BIGINT"),
    "name": ("STRING", "VARCHAR(40)"),
    "quantity": ("INT", "INT"),
    "price": ("DECIMAL(10, 2)", "NUMERIC(10, 2)"),
    "score": ("DOUBLE", "FLOAT8"),
    "ordered": ("TIMESTAMP(3)", "TIMESTAMP(3)"),
}
NAMES = ", ".join(COLUMNS)
MERGE = (
    f"INSERT INTO target ({NAMES}) SELECT {NAMES} FROM staged ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{c} = excluded.{c}" for c in COLUMNS if c != "id")
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server() as running:
        small, large = (make(Path(folder) / f"{rows}.csv", rows) for rows in (1_000, args.rows))
        environment = TableEnvironment.create()
        for name, path in (("few", small), ("many", large)):
            environment.execute_sql(declare(name, "filesystem", {"path": str(path), "format": "csv"}))
        sink = {"url": running.url, "table-name": "target", "sink.staging-path": folder}
        environment.execute_sql(declare("snk", "jdbc", sink))

        def prepare() -> psycopg.Connection[tuple[object, ...]]:
            open = running.connect()
            open.execute("DROP TABLE IF EXISTS target")
            open.execute(f"CREATE TABLE target ({sql_columns(1)}, PRIMARY KEY (id))")
            copy_and_merge(open, large, every_other=True)
            open.execute("VACUUM ANALYZE target")
            open.execute("CHECKPOINT")
            return open

        def ours(name: str) -> float:
            prepare().close()
            return timed(lambda: environment.execute_sql(f"INSERT INTO snk SELECT * FROM {name}").wait())

        def limit(path: Path) -> float:
            with prepare() as open:
                return timed(lambda: copy_and_merge(open, path, every_other=False))

        ours("few"), limit(small)
        runs = [(limit(large), ours("many")) for _ in range(args.repeat)]
    best_limit, best_ours = (min(side) for side in zip(*runs, strict=True))
    print("| rows | COPY and merge, rows/s | Tidemill, rows/s | ratio |")
    print("|---|---|---|---|")
    rates = [f"{args.rows / s:,.0f}" for s in (best_limit, best_ours)]
    print(f"| {args.rows:,} | {' | '.join(rates)} | {best_limit / best_ours:.2f} |")


def copy_and_merge(open: psycopg.Connection[tuple[object, ...]], path: Path, *, every_other: bool) -> None:
    """One transaction; ``every_other``: only the rows with an even id."""
    with open.transaction(), open.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE staged ON COMMIT DROP AS SELECT * FROM target WITH NO DATA")
        with cursor.copy("COPY staged FROM STDIN (FORMAT csv)") as copy, path.open("rb") as file:
            while chunk := file.read(CHUNK):
                copy.write(chunk)
        if every_other:
            cursor.execute("DELETE FROM staged WHERE id % 2 = 1")
        cursor.execute(MERGE.encode())


def timed(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def declare(name: str, connector: str, options: dict[str, str]) -> str:
    given = ", ".join(f"'{k}' = '{v}'" for k, v in ({"connector": connector} | options).items())
    return f"CREATE TABLE {name} ({sql_columns(0)}, PRIMARY KEY (id) NOT ENFORCED) WITH ({given})"


def sql_columns(dialect: int) -> str:
    """0: Flink's types, 1: PostgreSQL's."""
    return ", ".join(f"{name} {types[dialect]}" for name, types in COLUMNS.items())


def make(path: Path, rows: int) -> Path:
    """Every id below ``rows`` once, in random order."""
    random = np.random.default_rng(5)
    ids = random.permutation(rows)
    table = pa.table(
        {
            "id": ids,
            "name": pc.binary_join_element_wise("customer", pa.array(ids % 100_000).cast(pa.string()), " "),
            "quantity": random.integers(0, 1_000, rows),
            "price": random.integers(0, 1_000_000, rows) / 100,
            "score": random.random(rows),
            "ordered": pa.array(1_700_000_000_000 + ids, pa.timestamp("ms")).cast(pa.string()),
        }
    )
    csv.write_csv(table, path, csv.WriteOptions(include_header=False))
    return path


if __name__ == "__main__":
    main()
