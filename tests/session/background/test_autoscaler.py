"""The autoscaler's choices beside a model of a job, and a job whose partitions follow its load."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask
from tests.session.test_alter_job import COUNTED, make_folder, put, session, shows
from tidemill.session.background.autoscaler import Load, Policy
from tidemill.session.environment import TableEnvironment

TARGET = 0.7


def policy(least: int = 1, most: int = 8) -> Policy:
    return Policy(least=least, most=most, target=TARGET)


def load_of(partitions: int, cores: int, arriving: float) -> Load:
    """A minute of a job that reads 1,000 rows a second on each core, in epochs of a second at least."""
    capacity = 1_000 * min(partitions, cores)
    rows = min(arriving, capacity) * 60
    return Load(rows=int(rows), busy=rows / capacity, wall=60)


@pytest.mark.parametrize(
    ("partitions", "busy", "wanted"),
    [(2, 57, 3), (2, 42, 2), (2, 20, 2), (2, 13, 1), (1, 0, 1), (8, 60, 8), (5, 6, 2)],
)
def test_partitions_follow_the_part_of_time_in_epochs(partitions: int, busy: float, wanted: int) -> None:
    assert policy().choose(partitions, Load(rows=1_000, busy=busy, wall=60)) == wanted


def test_partitions_stay_within_the_limits() -> None:
    limited = policy(least=3, most=4)
    assert limited.choose(4, Load(rows=1, busy=60, wall=60)) == 4
    assert limited.choose(4, Load(rows=1, busy=1, wall=60)) == 3
    assert limited.choose(9, Load(rows=1, busy=30, wall=60)) == 4


def test_partitions_that_do_not_help_are_taken_back() -> None:
    chosen = policy()
    partitions, seen = 1, []
    for _ in range(12):
        partitions = chosen.choose(partitions, load_of(partitions, cores=2, arriving=9_000))
        seen.append(partitions)
    assert seen == [2, 3, *[2] * 10]
    assert chosen.choose(2, load_of(2, cores=2, arriving=10)) == 1
    assert chosen.choose(1, load_of(1, cores=2, arriving=9_000)) == 2


def test_a_load_that_stays_finds_partitions_that_stay() -> None:
    chance = random.Random(7)
    for _ in range(300):
        cores, arriving = chance.randint(1, 16), chance.uniform(10, 20_000)
        chosen, partitions = policy(most=16), chance.randint(1, 16)
        last: list[int] = []
        for _ in range(60):
            partitions = chosen.choose(partitions, load_of(partitions, cores, arriving))
            last.append(partitions)
        assert len(set(last[-10:])) == 1
        possible = min(arriving, 1_000 * cores) * 60
        assert load_of(partitions, cores, arriving).rows * 1.1 >= possible, (cores, arriving, partitions)


def test_a_job_that_keeps_no_state_says_so(spark: SparkSession) -> None:
    made = TableEnvironment.create({"job.autoscaler.enabled": "true"})
    ask(
        made,
        "CREATE TABLE g (k INT) WITH ('connector'='datagen', 'number-of-rows'='1')",
        "CREATE TABLE s (k INT) WITH ('connector'='blackhole')",
    )
    job = made.execute_sql("INSERT INTO s SELECT k FROM g").job
    assert job is not None
    job.wait(60)
    (warning,) = made.context.warnings
    assert warning.startswith(f"'job.autoscaler.enabled' has no effect on job {job.job_id}")


def test_a_job_gets_the_partitions_that_its_load_asks_for(spark: SparkSession, tmp_path: Path) -> None:
    make_folder(tmp_path)
    put(tmp_path, "a", (1, 10), (2, 20))
    made = session(
        tmp_path,
        parallelism__default="1",
        job__autoscaler__enabled="true",
        **{
            "job.autoscaler.stabilization.interval": "300 ms",
            "job.autoscaler.utilization.target": "0.0001",
            "job.autoscaler.vertex.max-parallelism": "3",
        },
    )
    job = made.execute_sql(COUNTED).job
    assert job is not None
    shows(tmp_path, (1, 10, 1), (2, 20, 1))
    for number in range(100):
        put(tmp_path, f"b{number}", (1, 1), *((k, 0) for k in range(3, 40)))
        done = number + 1
        shows(tmp_path, (1, 10 + done, 1 + done), (2, 20, 1), *((k, 0, done) for k in range(3, 40)))
        if {path.name for path in (tmp_path / "state" / "state").glob("*/*")} >= set("012"):
            break
    else:
        pytest.fail("The job still has one partition.")
    assert job.is_running()
    job.cancel()
    assert ask(made, f"VERIFY JOB '{job.job_id}'")[0][1] == "equal"
