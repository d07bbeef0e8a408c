"""The Spark job whose workers stay: its slots, its end, and what a lost worker or a failed task leaves."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tests.runtime.spark.resident.jobs import WAYS, heard, inserts, make_input, options, ran, sinks
from tidemill import udf
from tidemill.errors import TidemillError
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.spark.resident import workers
from tidemill.runtime.spark.resident.asked import Asked
from tidemill.runtime.spark.resident.epochs import ResidentEpochs
from tidemill.runtime.spark.resident.workers import resident_workers
from tidemill.runtime.spark.settings import SOCKET_FOLDER

COUNTS = ("SELECT k AS x, COUNT(*) AS y FROM a GROUP BY k",)
_PATIENCE = 60.0


def eventually(what: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not what():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.02)


def active(context: SparkContext) -> int:
    return len(context.statusTracker().getActiveJobsIds())


def sockets(context: SparkContext) -> set[str]:
    """The sockets of resident workers, also of other processes. PySpark's own sockets have other names."""
    folder = context.getConf().get(SOCKET_FOLDER) or ""
    return {name for name in os.listdir(folder) if name.startswith(workers.SOCKET)}


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    return make_input(tmp_path / "input", Random(11))


@pytest.fixture
def slots_are_free(spark: SparkSession) -> Iterator[None]:
    """Before and after the test."""
    eventually(lambda: active(spark.sparkContext) == 0)
    before = sockets(spark.sparkContext)
    yield
    eventually(lambda: active(spark.sparkContext) == 0)
    eventually(lambda: sockets(spark.sparkContext) <= before)
    eventually(lambda: not any(t.name.startswith("tidemill-resident") for t in threading.enumerate()))


@pytest.mark.usefixtures("slots_are_free")
def test_slots_come_back_with_the_end_of_the_job(
    spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """There is a worker for each partition, although small epochs have one."""
    session, seen = Session(options(10, "resident")), set[int]()

    def look(progress: EpochProgress) -> None:
        seen.add(len(resident_workers(spark.sparkContext).processes))

    session.environment.context.on_progress = look
    with heard() as found:
        ran(session, tables, tmp_path, COUNTS)
    assert seen - {0} == {2}
    assert found.failures == []
    assert not resident_workers(spark.sparkContext).are_there


@pytest.mark.usefixtures("slots_are_free")
def test_workers_that_start_ahead_are_those_of_the_first_epoch(
    spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    resident = resident_workers(spark.sparkContext)
    with patch.object(workers, "IDLE_SECONDS", _PATIENCE):
        resident.begin()
        eventually(lambda: resident.are_there)
        ahead = resident.processes
        session, seen = Session(options(10, "resident")), set[tuple[int, ...]]()
        session.environment.context.on_progress = lambda _: seen.add(resident.processes)
        ran(session, tables, tmp_path, COUNTS)
    assert seen == {ahead}


@pytest.mark.usefixtures("slots_are_free")
def test_workers_that_nobody_uses_give_their_slots_back(spark: SparkSession) -> None:
    resident = resident_workers(spark.sparkContext)
    with patch.object(workers, "IDLE_SECONDS", 0.2):
        resident.begin()
        eventually(lambda: resident.are_there)
        eventually(lambda: not resident.are_there)


@pytest.mark.usefixtures("slots_are_free")
def test_slots_come_back_while_no_epoch_runs(spark: SparkSession, tables: list[str], tmp_path: Path) -> None:
    """A job that waits for input holds none."""
    waiting = tables[0].replace("'format'", "'source.monitor-interval'='1 h', 'format'")
    session = Session({**options(30, "resident"), "table.exec.mini-batch.allow-latency": "100 ms"})
    session.execute(waiting, *sinks(tmp_path, 1))
    with heard() as found, patch.object(workers, "IDLE_SECONDS", 0.2):
        result = session.environment.execute_sql(inserts(COUNTS))
        eventually(lambda: len(found.resident) == 2)
        eventually(lambda: not resident_workers(spark.sparkContext).are_there)
        assert result.job is not None
        result.job.cancel()


@pytest.mark.usefixtures("slots_are_free")
def test_another_query_gets_the_slots(spark: SparkSession, tables: list[str], tmp_path: Path) -> None:
    """Its Spark job begins while resident workers hold all slots."""
    session, counted = Session(options(10, "resident")), []
    query = threading.Thread(target=lambda: counted.append(spark.range(100).repartition(2).count()))

    def look(progress: EpochProgress) -> None:
        if progress.epoch == 2:
            query.start()
            query.join(_PATIENCE)

    session.environment.context.on_progress = look
    with heard() as found, patch.object(workers, "IDLE_SECONDS", 600.0):
        ran(session, tables, tmp_path, COUNTS)
    assert counted == [100]
    assert len(found.resident) >= 2


@pytest.mark.usefixtures("slots_are_free")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_killed(
    way: signal.Signals, spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """Its epoch runs again as a Spark job, later ones in new workers; the answer stays."""
    expected = ran(Session(options(10, "frames")), tables, tmp_path / "spark", COUNTS)
    killed: list[int] = []
    plain = ResidentEpochs.run

    def run(epochs: ResidentEpochs, facts: Any, reads: Any, discard: Callable[[], None]) -> object:
        pids = resident_workers(spark.sparkContext).processes
        if pids and not killed:
            killed.append(pids[0])
            os.kill(pids[0], way)
        return plain(epochs, facts, reads, discard)

    with (
        patch.object(ResidentEpochs, "run", run),
        heard() as found,
    ):
        answer = ran(Session(options(10, "resident")), tables, tmp_path / "resident", COUNTS)
    assert killed
    assert answer == expected
    assert len(found.failures) == 1
    assert found.resident[-1] > min(found.spark)


@pytest.mark.usefixtures("slots_are_free")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k AS x, SUM(v) AS y FROM a GROUP BY k",
        "SELECT id AS x, 100 / (v - v) AS y FROM a",
        "SELECT id AS x, CAST(CAST(ts AS STRING) AS BIGINT) AS y FROM a",
    ],
)
def test_errors_are_those_of_a_spark_job(
    query: str, spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """The last row of the input is a bad one, the others break an expression."""
    with (tmp_path / "input" / "a.csv").open("a") as file:
        file.write("2024-05-01 00:02:00,1,none,60\n")
    said = []
    for way in WAYS:
        session = Session(options(10, way))
        with heard(), pytest.raises(TidemillError) as raised:
            ran(session, tables, tmp_path / way, (query,))
        said.append((type(raised.value), raised.value.message, raised.value.hint))
    assert said[0] == said[1] == said[2]


@pytest.mark.usefixtures("slots_are_free")
def test_a_large_epoch_is_a_spark_job(spark: SparkSession, tables: list[str], tmp_path: Path) -> None:
    with heard() as found, patch("tidemill.runtime.spark.resident.epochs.LARGEST", 100):
        ran(Session(options(10, "resident")), tables, tmp_path, COUNTS)
    assert found.resident == []


@pytest.mark.usefixtures("slots_are_free")
def test_what_fails_in_resident_workers_alone_is_left_to_spark(
    spark: SparkSession, tables: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = ran(Session(options(10, "frames")), tables, tmp_path / "spark", COUNTS)
    with (
        patch.object(Asked, "_answered", side_effect=TypeError("cannot be sent")),
        heard() as found,
        caplog.at_level(logging.WARNING, "tidemill"),
    ):
        answer = ran(Session(options(10, "resident")), tables, tmp_path / "resident", COUNTS)
    assert answer == expected
    assert found.resident == []
    assert found.failures == ["cannot be sent"] * 3
    (warning,) = (r.getMessage() for r in caplog.records if "resident" in r.getMessage())
    assert "3 in a row failed" in warning
    assert "cannot be sent" in warning


@pytest.mark.usefixtures("slots_are_free")
def test_a_job_whose_workers_do_not_start_is_left_to_spark(
    spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """Each epoch would wait for them, in vain."""
    with heard() as found, patch.object(workers, "START_SECONDS", 0.0):
        ran(Session(options(10, "resident")), tables, tmp_path, COUNTS)
    assert found.resident == []
    assert found.failures == ["workers have not started"] * 3


@pytest.mark.parametrize("way", ["abort", "cancel"])
def test_a_job_that_ends_does_not_wait_for_workers_that_start(
    way: str, spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """They do not come before the test has ended. A job that is cancelled ends its epoch as a Spark job."""
    begun, ended = threading.Event(), threading.Event()

    def never(*_: object) -> None:
        begun.set()
        ended.wait(_PATIENCE)

    session = Session(options(10, "resident"))
    session.execute(*tables, *sinks(tmp_path, 1))
    with heard() as found, patch.object(workers, "_run", never), patch.object(workers, "END_SECONDS", 0.0):
        job = session.environment.execute_sql(inserts(COUNTS)).job
        assert job is not None
        assert begun.wait(_PATIENCE)
        asked = threading.Thread(target=getattr(job, way))
        asked.start()
        asked.join(_PATIENCE)
        assert not asked.is_alive()
        eventually(lambda: not job.is_running())
        ended.set()
    assert found.failures == []
    assert len(session.progress) == (1 if way == "cancel" else 0)


@pytest.mark.usefixtures("slots_are_free")
def test_a_job_that_ends_does_not_wait_for_its_turn(
    spark: SparkSession, tables: list[str], tmp_path: Path
) -> None:
    """An epoch of another job has the workers."""
    session = Session(options(10, "resident"))
    session.execute(*tables, *sinks(tmp_path, 1))
    there = resident_workers(spark.sparkContext)
    with heard(), there.used(), there.lent(2, lambda: False) as lent:
        assert lent is not None
        job = session.environment.execute_sql(inserts(COUNTS)).job
        assert job is not None
        job.abort()
        eventually(lambda: not job.is_running())
    assert session.progress == []


@pytest.mark.thorough
@pytest.mark.usefixtures("slots_are_free")
def test_jobs_beside_each_other_are_as_alone(spark: SparkSession, tables: list[str], tmp_path: Path) -> None:
    """Six have epochs at once, beside one that fails, and workers are killed now and then."""
    expected = ran(Session(options(3, "frames")), tables, tmp_path / "alone", COUNTS)
    bad = "SELECT id AS x, 100 / (v - v) AS y FROM a"
    answers, errors, ended = list[object](), list[TidemillError](), threading.Event()

    def good(name: str) -> None:
        answers.append(ran(Session(options(3, "resident")), tables, tmp_path / name, COUNTS))

    def failing() -> None:
        while not ended.is_set():
            try:
                ran(Session(options(3, "resident")), tables, tmp_path / str(len(errors)), (bad,))
            except TidemillError as e:
                errors.append(e)

    def killing() -> None:
        chance = Random(7)
        while not ended.wait(chance.uniform(0.3, 0.9)):
            for pid in resident_workers(spark.sparkContext).processes[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    jobs = [threading.Thread(target=good, args=(f"good{n}",)) for n in range(6)]
    others = [threading.Thread(target=other) for other in (failing, killing)]
    for thread in (*jobs, *others):
        thread.start()
    for thread in jobs:
        thread.join(3 * _PATIENCE)
    ended.set()
    for thread in others:
        thread.join(_PATIENCE)
    assert answers == [expected] * 6
    assert errors
    assert {e.message for e in errors} == {errors[0].message}


@pytest.mark.parametrize("way", WAYS)
def test_what_fails_for_rows_that_a_step_left_out(way: str, spark: SparkSession, tmp_path: Path) -> None:
    """A kernel that cannot treat a date asks for another run. The function sees no row without a match."""
    for name, day in (("x", "2024-01-01"), ("y", "2024-1-1")):
        (tmp_path / f"{name}.csv").write_text(f"1,{day}\n")
    session = Session(options(10, way))
    session.execute(
        *(
            f"CREATE TABLE {name} (k BIGINT, s STRING) "
            f"WITH ('connector'='filesystem', 'path'='{tmp_path}/{name}.csv', 'format'='csv')"
            for name in "xy"
        )
    )
    session.environment.create_temporary_function("year_of", udf(lambda day: day[:4], result_type="STRING"))
    days = "(SELECT k, CAST(s AS DATE) AS d FROM y) AS y"
    query = f"SELECT x.k, year_of(CAST(y.d AS STRING)) FROM x LEFT JOIN {days} ON x.k = y.k"
    assert "2024" in repr(session.changes(query))
