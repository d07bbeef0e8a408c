"""Asks queries twice, with blocking and with pipelined exchanges, in a Spark with slots for both sides:
``python -m tests.runtime.pipelined_job FOLDER [MASTER [NAME ...]]`` prints a line of JSON for each."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tests import visible
from tests.runtime.pipelined_queries import BAD, QUERIES
from tests.session.environments import ask
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filesystem.sink import FileSink
from tidemill.connectors.filesystem.writing import StagedWriter
from tidemill.errors import ExecutionError, TidemillError
from tidemill.physical.batch.view.steps import ADAPTIVE, AHEAD
from tidemill.runtime.events import ExchangesBlocked, JobEvent
from tidemill.session.environment import TableEnvironment
from tidemill.user_functions.declared import udf

MODE = "SET 'execution.batch-shuffle-mode' = 'ALL_EXCHANGES_{}'"
FILES, ROWS = 6, 3000
LONG = 60.0
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
    told = list[str]()

    def hear(event: JobEvent) -> None:
        if isinstance(event, ExchangesBlocked):
            told.append(event.reason)

    session.context.on_event = hear
    for name in names or QUERIES:
        # A thread of its own, in which nothing of Spark's was made before.
        with ThreadPoolExecutor(1) as pool:
            tell(name, **pool.submit(asked, session, QUERIES[name]).result(), told=taken(told))
    tell("insert", lines=inserted(session, folder), told=taken(told))
    tell("beside", answers=beside_each_other(session), told=taken(told))
    tell("lost", **lost(session, folder), told=taken(told))
    for name, query in BAD.items():
        tell(name, error=failure(session, query), told=taken(told))
    for mode in ("PIPELINED", "BLOCKING"):
        tell(f"outlived {mode}", **outlived(session, folder, mode))


def taken(told: list[str]) -> list[str]:
    """Why exchanges were blocking since the last time."""
    texts = list(told)
    told.clear()
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
    return {
        "blocking": texts(blocking),
        "pipelined": texts(ask(session, query)),
        "how": how(text),
        "runs": sorted({word for word in (ADAPTIVE, AHEAD) if f"runs=[moved {word}]" in text}),
    }


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


def failure(session: TableEnvironment, query: str) -> str:
    with pytest.raises(ExecutionError) as raised:
        ask(session, query)
    return raised.value.message


@dataclass(frozen=True)
class Outliving:
    """The first task has all its rows, and writes them when nothing is staged any more; another one fails."""

    writer: StagedWriter
    folder: Path
    mark: Path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() > 0:
            until(self.mark.exists)
            raise ValueError("The other one goes on.")
        rows = list(batches)
        with self.mark.open("a") as pids:
            print(os.getpid(), file=pids)
        until(lambda: not (self.folder / ".staging").exists())
        yield from self.writer(rows)


def outlived(session: TableEnvironment, folder: Path, mode: str) -> dict[str, Any]:
    """An INSERT that fails while a task of it is about to write: what is left when that has ended."""
    taken, mark = folder / f"outlived_{mode.lower()}", folder / f"outlives_{mode.lower()}"
    session.execute_sql(MODE.format(mode))
    session.execute_sql("SET 'execution.batch.adaptive.auto-parallelism.enabled' = 'false'")
    session.execute_sql(table(taken.name, "k BIGINT, n BIGINT", folder, "csv"))
    adaptive: list[str | None] = []

    def stage(sink: FileSink, frame: DataFrame, epoch: int) -> DataFrame:
        adaptive.append(frame.sparkSession.conf.get("spark.sql.adaptive.enabled"))
        return map_batches(frame, Outliving(sink.writer(epoch, sink.begin()), taken, mark), "token STRING")

    error = ""
    with mock.patch.object(FileSink, "stage", stage):
        try:
            session.execute_sql(f"INSERT INTO {taken.name} SELECT k, COUNT(*) FROM t GROUP BY k").wait()
        except TidemillError as e:
            error = str(e)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in mark.read_text().split()))
    return {"error": error, "adaptive": adaptive, "left": [str(path) for path in taken.rglob("*")]}


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not what():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)


def tell(name: str, **what: object) -> None:
    print(json.dumps({"name": name, **what}), flush=True)


if __name__ == "__main__":
    main()
