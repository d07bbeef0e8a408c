"""A gateway's service in this process, and a client that asks it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.config.option import Configuration
from tidemill.errors import TidemillError
from tidemill.gateway.api import OperationStatus, ResultType
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.start import GatewayProcess

LONG = 60.0
BATCH = {"execution.runtime-mode": "batch"}
NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""

SLOW = "SELECT COUNT(*) FROM g AS x, g AS y WHERE x.id * y.id = 7"


@contextmanager
def served(folder: Path) -> Iterator[Gateway]:
    house = GatewayProcess(options(folder))
    house.start()
    yield house.gateway
    house.close()


def options(folder: Path) -> Configuration:
    return Configuration({"tidemill.gateway.directory": str(folder), "parallelism.default": "1"})


class Client:
    """One session; asks and waits."""

    def __init__(self, made: Gateway, **properties: str) -> None:
        self.gateway = made
        self.session = made.open_session({k.replace("__", "."): v for k, v in properties.items()})

    def submit(self, sql: str, options: Mapping[str, str] | None = None) -> str:
        return self.gateway.execute(self.session, sql, options)

    def rows(self, operation: str, least: int = 1 << 30) -> list[Any]:
        """All rows, or at least so many, with their kinds where there are any."""
        got: list[Any] = []
        token = 0
        while len(got) < least:
            self.gateway.wait_rows(self.session, operation, token, 1.0)
            page = self.gateway.fetch(self.session, operation, token)
            if page.type is ResultType.EOS:
                break
            if page.type is ResultType.PAYLOAD and page.rows is not None and page.next_token is not None:
                token = page.next_token
                for row in page.rows.to_pylist():
                    kind = row.pop(KIND_COLUMN, None)
                    got.append((*(() if kind is None else (RowKind(kind).short,)), *row.values()))
        return got

    def ask(self, sql: str, options: Mapping[str, str] | None = None) -> list[Any]:
        return self.rows(self.submit(sql, options))

    def fails(self, sql: str) -> TidemillError:
        operation = self.submit(sql)
        info = self.gateway.wait(self.session, operation, LONG)
        assert info.status is OperationStatus.ERROR
        assert info.error is not None
        return info.error


def spark_is_idle(spark: SparkSession) -> bool:
    return not spark.sparkContext.statusTracker().getActiveJobsIds()


def has_tasks(spark: SparkSession) -> bool:
    """Whether any runs; those of a job that was given up may go on for a while."""
    java: Any = spark.sparkContext._jsc
    return any(e.numRunningTasks() for e in java.sc().statusTracker().getExecutorInfos())


def until(what: Any) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)
