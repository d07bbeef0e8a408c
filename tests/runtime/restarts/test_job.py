"""A job that fails outside its query goes on after its last epoch; one that fails in it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.session.environments import ask
from tidemill.errors import (
    NOTHING_COMMITTED,
    ConnectorError,
    ExecutionError,
    LostDriverError,
    OwnershipError,
    StateError,
    ValidationError,
)
from tidemill.runtime.events import JobEvent, JobFailed
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle

LONG = 120.0
ROWS = 60
NUMBERS = f"""CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='1000000',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='{ROWS}')"""


class Failing:
    """A session whose jobs fail at the chosen steps of their commits, counted over all starts."""

    def __init__(self, folder: Path, strategy: str, failures: dict[int, Exception], **options: str) -> None:
        self.steps = 0
        self.events: list[JobFailed] = []
        self.failed = threading.Event()
        self._failures = failures
        self._sink = folder / "sink"
        self.session = TableEnvironment.create(
            {
                "parallelism.default": "1",
                "tidemill.epoch.max-rows": "10",
                "execution.checkpointing.dir": str(folder / "checkpoint"),
                "restart-strategy.type": strategy,
                **{
                    f"restart-strategy.{k.replace('__', '.').replace('_', '-')}": v
                    for k, v in options.items()
                },
            }
        )
        self.session.context.fault = self._step
        self.session.context.on_event = self._event
        sink = f"WITH ('connector'='filesystem', 'path'='{self._sink}', 'format'='csv')"
        ask(self.session, NUMBERS, f"CREATE TABLE sink (k INT, n BIGINT) {sink}")

    def start(self, query: str = "SELECT id, id FROM g") -> JobHandle:
        job = self.session.execute_sql(f"INSERT INTO sink {query}").job
        assert job is not None
        return job

    def written(self) -> list[int]:
        return sorted(int(line.partition(",")[0]) for line in visible.lines(self._sink))

    def _step(self, _: str) -> None:
        self.steps += 1
        if self.steps in self._failures:
            raise self._failures[self.steps]

    def _event(self, event: JobEvent) -> None:
        if isinstance(event, JobFailed):
            self.events.append(event)
            self.failed.set()


def quick(attempts: int) -> dict[str, str]:
    return {"fixed_delay__attempts": str(attempts), "fixed_delay__delay": "1 ms"}


def failures(*steps: int) -> dict[int, Exception]:
    return {step: ConnectorError(f"the database is down at {step}") for step in steps}


def test_nothing_is_lost_or_written_twice(spark: SparkSession, tmp_path: Path) -> None:
    made = Failing(tmp_path, "fixed-delay", failures(7, 12, 13, 20), **quick(4))
    job = made.start()
    job.wait(LONG)
    assert job.status == "FINISHED"
    assert made.written() == list(range(1, ROWS + 1))
    assert [(e.job_id, e.error, e.wait) for e in made.events] == [
        (job.job_id, f"the database is down at {step}", 0.001) for step in (7, 12, 13, 20)
    ]


def test_a_strategy_that_has_had_enough_ends_the_job_with_its_last_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = Failing(tmp_path, "fixed-delay", failures(7, 9, 11), **quick(1))
    job = made.start()
    with pytest.raises(ConnectorError, match="is down at 9"):
        job.wait(LONG)
    assert (job.status, job.is_running(), [e.wait for e in made.events]) == ("FAILED", False, [0.001, None])
    # The same statement, given again by another session, goes on from there.
    Failing(tmp_path, "none", {}).start().wait(LONG)
    assert made.written() == list(range(1, ROWS + 1))


@pytest.mark.parametrize("end", [lambda job: job.cancel(), lambda job: job.abort()])
def test_a_job_that_waits_can_be_ended(
    spark: SparkSession, tmp_path: Path, end: Callable[[JobHandle], None]
) -> None:
    made = Failing(tmp_path, "fixed-delay", failures(7), fixed_delay__delay="1 h")
    job = made.start()
    assert made.failed.wait(LONG)
    assert (job.status, job.is_running()) == ("RESTARTING", True)
    end(job)
    job.wait(LONG)
    assert (job.status, job.is_running()) == ("CANCELED", False)


def test_a_job_that_waits_is_neither_saved_nor_altered(spark: SparkSession, tmp_path: Path) -> None:
    """It is told so, nothing is left of it, and the job goes on as it was."""
    made = Failing(tmp_path, "fixed-delay", failures(7), fixed_delay__delay="2 s")
    job = made.start()
    assert made.failed.wait(LONG)
    saved = tmp_path / "saved"
    ask(made.session, f"SET 'execution.checkpointing.savepoint-dir' = '{saved}'")
    for statement in (
        f"CREATE SAVEPOINT '{saved}' FOR JOB '{job.job_id}'",
        f"ALTER JOB '{job.job_id}' SET ('parallelism.default' = '3')",
        f"ALTER JOB '{job.job_id}' AS INSERT INTO sink SELECT id, id + 1 FROM g",
        f"VERIFY JOB '{job.job_id}'",
        f"STOP JOB '{job.job_id}' WITH SAVEPOINT",
    ):
        with pytest.raises(ValidationError, match=f"{job.job_id}.* does not run: it is RESTARTING"):
            ask(made.session, statement)
    assert not saved.exists()
    job.wait(LONG)
    assert made.written() == list(range(1, ROWS + 1))


def test_what_would_fail_again_ends_the_job_at_once(spark: SparkSession, tmp_path: Path) -> None:
    made = Failing(tmp_path, "exponential-delay", {})
    job = made.start("SELECT id, 1 / (id - 35) FROM g")
    with pytest.raises(ExecutionError):
        job.wait(LONG)
    assert (job.status, made.events) == ("FAILED", [])
    for place, error in {"taken": OwnershipError("another has it"), "lost": LostDriverError("gone")}.items():
        hopeless = Failing(tmp_path / place, "exponential-delay", {7: error})
        with pytest.raises(type(error)):
            hopeless.start().wait(LONG)
        assert hopeless.events == []
    # Without a checkpoint directory it would begin anew.
    full = StateError("Cannot write", hint=f"Make room. {NOTHING_COMMITTED}")
    forgetful = Failing(tmp_path / "forgetful", "exponential-delay", {7: full})
    ask(forgetful.session, "SET 'execution.checkpointing.dir' = ''")
    with pytest.raises(StateError) as raised:
        forgetful.start().wait(LONG)
    assert "it begins anew" in raised.value.hint
    assert NOTHING_COMMITTED not in raised.value.hint
