"""TPC-DS in batch mode against plain Spark SQL: ``python -m bench.tpcds --scale 1 --memory 3g q3 q7 q64``

Facts lie in a folder for each day on which they were sold, returned or counted, rows without a day in
Hive's default partition. Data and texts come from DuckDB's extension: ``pip install '.[bench]'``. Both sides
are given one text, in which ``EDITS`` changes what Flink does not take or calculates in whole numbers.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.plain_spark import Sides

try:
    import duckdb
except ImportError:
    duckdb = None

DATA = Path("/tmp/tidemill-tpcds")
DAYS = {
    "store_sales": "ss_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
}
"""By table the column of its partitions."""
WITHOUT_DAY = "__HIVE_DEFAULT_PARTITION__"
TYPES = {"BIGINT": "INT", "INTEGER": "INT", "VARCHAR": "STRING"}
"""Of columns, by DuckDB's. No number needs more than INT, which is what Spark takes a folder's day for."""

ALL = ""
EDITS = (
    (ALL, r'"([^"]+)"', r"`\1`"),
    # Flink's averages and deviations of whole numbers are whole numbers.
    (ALL, r"(?i)\b(avg|stddev_samp)\((\w+_quantity\w*|agg1|cd_dep_\w+)\)", r"\1(CAST(\2 AS DOUBLE))"),
    ("q27", r"NULL AS (\w+)", r"CAST(NULL AS STRING) AS \1"),
    ("q36", r"NULL AS (\w+)", r"CAST(NULL AS STRING) AS \1"),
    # Flink's names are the same only where the case of their letters is.
    ("q49", "CATALOG", "catalog"),
    ("q72", r"d_date \+ 5", "d_date + INTERVAL '5' DAY"),
)
"""In which query, what is looked for and what is put there."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="that each side of a query runs at least")
    parser.add_argument("--memory", default="3g", help="of Spark's driver, which runs the tasks, too")
    parser.add_argument("queries", nargs="*")
    given = parser.parse_args()
    duck = connected()
    queries, tables = texts(duck), columns(duck)
    folder = DATA / f"scale-{given.scale}"
    if not folder.exists():
        write(duck, folder, given.scale, tables)
    duck.close()
    settings = {"spark.driver.memory": given.memory}
    sides = Sides.over(folder, tables, create_tables(folder, tables), queries, settings)
    sides.compared(given.queries or queries, given.runs, given.seconds)


def connected() -> Any:
    """DuckDB with its extension, a package that fits one version of it."""
    if duckdb is None:
        raise SystemExit("DuckDB makes TPC-DS's data: pip install '.[bench]'")
    made = duckdb.connect()
    extension = files("duckdb_extension_tpcds") / f"extensions/v{duckdb.__version__}/tpcds.duckdb_extension"
    made.execute(f"LOAD '{extension}'")
    return made


def texts(duck: Any) -> dict[str, str]:
    """The queries by name, as both sides are given them."""
    rows = duck.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {f"q{number}": edited(f"q{number}", text) for number, text in rows}


def edited(name: str, text: str) -> str:
    text = text.strip().removesuffix(";")
    for where, old, new in EDITS:
        if where in (ALL, name):
            text = re.sub(old, new, text)
    return text


def columns(duck: Any) -> dict[str, dict[str, str]]:
    """Of every table the columns and their types."""
    duck.execute("CALL dsdgen(sf = 0)")
    names = [name for (name,) in duck.execute("SHOW TABLES").fetchall()]
    return {
        name: {
            column: TYPES.get(kind, kind) for column, kind, *_ in duck.execute(f"DESCRIBE {name}").fetchall()
        }
        for name in names
    }


def write(duck: Any, folder: Path, scale: float, tables: Mapping[str, Mapping[str, str]]) -> None:
    """One folder per table below ``folder``; facts in one of its folders for each day."""
    duck.execute(f"CALL dsdgen(sf = {scale}, overwrite = true)")
    # One task that has all days' files open: each day gets one.
    duck.execute("SET threads = 1")
    duck.execute("SET partitioned_write_max_open_files = 3000")
    for name, types in tables.items():
        chosen = ", ".join(
            f"CAST({column} AS INTEGER) AS {column}" if kind == "INT" else column
            for column, kind in types.items()
        )
        if name in DAYS:
            rows, to = f"SELECT {chosen} FROM {name} ORDER BY {DAYS[name]}", folder / name
            duck.execute(f"COPY ({rows}) TO '{to}' (FORMAT parquet, PARTITION_BY ({DAYS[name]}))")
        else:
            (folder / name).mkdir(parents=True)
            duck.execute(
                f"COPY (SELECT {chosen} FROM {name}) TO '{folder / name}/part-0.parquet' (FORMAT parquet)"
            )


def create_tables(folder: Path, tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [_create_table(name, folder / name, types) for name, types in tables.items()]


def _create_table(name: str, folder: Path, types: Mapping[str, str]) -> str:
    declared = ", ".join(f"{column} {kind}" for column, kind in types.items())
    options = f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet'"
    if name not in DAYS:
        return f"CREATE TABLE {name} ({declared}) WITH ({options})"
    options += f", 'partition.default-name' = '{WITHOUT_DAY}'"
    return f"CREATE TABLE {name} ({declared}) PARTITIONED BY ({DAYS[name]}) WITH ({options})"


if __name__ == "__main__":
    main()
