"""TPC-H in batch mode against plain Spark SQL: ``python -m bench.tpch --scale 1 --memory 3g q2 q8 q9``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.plain_spark import Sides
from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables

DATA = Path("/tmp/tidemill-tpch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0, help="that each side of a query runs at least")
    parser.add_argument("--memory", default="3g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*", default=list(QUERIES))
    given = parser.parse_args()
    folder = DATA / f"scale-{given.scale}"
    if not folder.exists():
        write(folder, given.scale)
    settings = {"spark.driver.memory": given.memory}
    Sides.over(folder, TABLES, create_tables(folder), QUERIES, settings).compared(
        given.queries, given.runs, given.seconds
    )


if __name__ == "__main__":
    main()
