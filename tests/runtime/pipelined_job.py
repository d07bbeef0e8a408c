"""Asks queries twice, with blocking and with pipelined exchanges, in a Spark with slots for both sides:
``python -m tests.runtime.pipelined_job FOLDER [MASTER [NAME ...]]`` prints a line of JSON for each."""

from __future__ import annotations

import json
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests import visible
from tests.runtime.pipelined_queries import QUERIES
from tests.session.environments import ask
from tidemill.session.environment import TableEnvironment
from tidemill.user_functions.declared import udf

MODE = "SET 'execution.batch-shuffle-mode' = 'ALL_EXCHANGES_{}'"
FILES, ROWS = 6, 3000
OPTIONS = {
    "execution.runtime-mode": "batch",
    # Spark pipelines nothing where tasks may have copies.
    "execution.batch.speculative.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}


def main() -> None:
    folder, master, *names = Path(sys.argv[1]), *(sys.argv[2:] or ["local[8,3]"])
    write(folder)
    place = {"spark.master": master, "tidemill.shared-filesystem": str(folder)}
    session = TableEnvironment.create({**OPTIONS, **place})
    for name, columns in (("t", "k BIGINT, s STRING, v DOUBLE"), ("u", "k BIGINT, w INT")):
        session.execute_sql(table(name, columns, folder, "parquet"))
    session.execute_sql("SET 'table.optimizer.join.broadcast-threshold' = '-1'")
    failed = Warnings()
    logging.getLogger("tidemill.batch").addHandler(failed)
    for name in names or QUERIES:
        # A thread of its own, in which nothing of Spark's was made before.
        with ThreadPoolExecutor(1) as pool:
            tell(name, **pool.submit(asked, session, QUERIES[name]).result(), failed=failed.taken())
    tell("insert", lines=inserted(session, folder), failed=failed.taken())
    tell("beside", answers=beside_each_other(session))
    tell("lost", **lost(session, folder))


class Warnings(logging.Handler):
    """What was asked again with blocking exchanges."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())

    def taken(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts


def write(folder: Path) -> None:
    for name in ("t", "u"):
        (folder / name).mkdir()
    for number in range(FILES):
        ids = [number * ROWS + i for i in range(ROWS)]
        t = {"k": [i * 7 % 1009 for i in ids], "s": [f"s{i % 5}" for i in ids], "v": [i / 8 for i in ids]}
        pq.write_table(pa.table(t), folder / "t" / f"{number}.parquet")
    u = {"k": pa.array(range(0, 1009, 3), pa.int64()), "w": pa.array(range(337), pa.int32())}
    pq.write_table(pa.table(u), folder / "u" / "0.parquet")


def table(name: str, columns: str, folder: Path, kind: str) -> str:
    path = folder / name
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', "
        f"'format' = '{kind}')"
    )


def asked(session: TableEnvironment, query: str) -> dict[str, Any]:
    """The rows of both, and how EXPLAIN says that the second runs."""
    session.execute_sql(MODE.format("BLOCKING"))
    blocking = ask(session, query)
    session.execute_sql(MODE.format("PIPELINED"))
    text = session.explain_sql(query)
    return {"blocking": texts(blocking), "pipelined": texts(ask(session, query)), "how": how(text)}


def how(explained: str) -> list[str]:
    """Each mode once."""
    lines = [line.partition("shuffle_mode=[")[2] for line in explained.splitlines() if "shuffle_mode" in line]
    return sorted({line.partition("]")[0] for line in lines})


def texts(rows: list[tuple[Any, ...]]) -> list[str]:
    return [str(row) for row in rows]


def inserted(session: TableEnvironment, folder: Path) -> list[str]:
    session.execute_sql(table("taken", "k BIGINT, n BIGINT", folder, "csv"))
    session.execute_sql("INSERT INTO taken SELECT k, COUNT(*) FROM t GROUP BY k").wait()
    return visible.lines(folder / "taken")


def beside_each_other(session: TableEnvironment) -> list[list[str]]:
    """Each would take all slots: some run with blocking exchanges."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: texts(ask(session, QUERIES["join"])), range(12)))


def lost(session: TableEnvironment, folder: Path) -> dict[str, Any]:
    """The Python process of one task that reads an exchange ends; the marks are how often."""
    marks = folder / "marks"
    marks.mkdir()

    @udf(result_type="BIGINT")
    def ends_once(n: int) -> int:
        if not any(marks.iterdir()):
            (marks / str(os.getpid())).touch()
            os._exit(1)
        return n

    session.create_temporary_function("ends_once", ends_once)
    query = "SELECT s, ends_once(n) AS n FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s)"
    return {"rows": sorted(texts(ask(session, query))), "marks": len(list(marks.iterdir()))}


def tell(name: str, **what: object) -> None:
    print(json.dumps({"name": name, **what}), flush=True)


if __name__ == "__main__":
    main()
