"""A batch job that is slow on one of two machines: ``python -m tests.cluster.slow_job MASTER FOLDER``

Its function waits long for each row on the second machine, and hardly elsewhere. A first query, over which it
does not wait, starts the Python processes of both. Afterwards it tells where tasks run: the hosts of another
query, in a line, and, after it has read one, of the same query again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemill.runtime.spark.session import spark_application
from tidemill.session.environment import TableEnvironment
from tidemill.session.history.keeper import Keeper, own_records
from tidemill.user_functions.declared import udf

SECOND, SLOW = "127.0.0.2", 0.6
"""The machine that is slow, and the seconds that it takes for a row."""
OPTIONS = {
    "execution.runtime-mode": "batch",
    "execution.batch.adaptive.auto-parallelism.default-source-parallelism": "12",
    "execution.batch.speculative.enabled": "true",
    "execution.batch.speculative.block-slow-node-duration": "1 h",
    "slow-task-detector.check-interval": "100 ms",
    "slow-task-detector.execution-time.baseline-lower-bound": "500 ms",
    "slow-task-detector.execution-time.baseline-ratio": "0.3",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    # A file is a task.
    "spark.sql.files.openCostInBytes": str(128 << 20),
}


def main() -> None:
    master, folder = sys.argv[1:]

    @udf(result_type="BIGINT")
    def waited(value: int) -> int:
        slow = value >= 0 and os.environ.get("SPARK_LOCAL_IP") == SECOND
        time.sleep(SLOW if slow else 0.01)
        return value

    @udf(result_type="STRING")
    def host(value: int) -> str:
        return os.environ.get("SPARK_LOCAL_IP", "")

    place = {"spark.master": master, "tidemill.shared-filesystem": folder}
    kept = {"tidemill.history.directory": f"{folder}/history"}
    environment = TableEnvironment.create({**OPTIONS, **place, **kept})
    environment.context.history = Keeper(records=own_records(environment.context.configuration))
    environment.create_temporary_function("waited", waited)
    for table, written in (("given", "parquet"), ("taken", "csv")):
        files = f"'connector' = 'filesystem', 'path' = '{folder}/{table}', 'format' = '{written}'"
        environment.execute_sql(f"CREATE TABLE {table} (v BIGINT) WITH ({files})")
    with no_copies(environment):
        environment.execute_sql("SELECT SUM(waited(-1 - v)) FROM given").wait()
    environment.execute_sql("INSERT INTO taken SELECT waited(v) FROM given").wait()
    environment.create_temporary_function("host", host)
    query = "SELECT DISTINCT host(v) FROM given ORDER BY 1"
    print(*(row[0] for row in environment.execute_sql(query).collect()), flush=True)
    sys.stdin.readline()
    print(*(row[0] for row in environment.execute_sql(query).collect()), flush=True)


@contextmanager
def no_copies(environment: TableEnvironment) -> Iterator[None]:
    """Of tasks that begin within: who starts his processes last is not slow."""
    java: Any = spark_application(environment.context.configuration).sparkContext._jsc
    conf = java.sc().conf()
    conf.set("spark.speculation", "false")
    yield
    conf.set("spark.speculation", "true")


if __name__ == "__main__":
    main()
