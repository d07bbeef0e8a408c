"""Jobs that follow a table of a database, whichever server it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.running import Crash, Session, crash_at


def options(folder: Path) -> dict[str, str]:
    return {
        "execution.checkpointing.dir": f"{folder}/checkpoint",
        "table.exec.mini-batch.allow-latency": "10 ms",
        "parallelism.default": "2",
    }


@contextmanager
def running(tables: Sequence[str], inserts: str, folder: Path) -> Iterator[Session]:
    """The job runs until the context ends; then it is stopped in good order."""
    session = Session(options(folder))
    session.execute(*tables)
    job = session.environment.execute_sql(inserts).get_job_client()
    assert job is not None
    try:
        yield session
    finally:
        job.stop()
        job.wait(60)


def crashes(tables: Sequence[str], inserts: str, folder: Path) -> Iterator[int]:
    """The driver dies with a snapshot planned, with it committed, and with changes planned. The number of the
    crash follows each, so that the caller changes the tables before the next."""
    for number, step in enumerate(("planned", "committed", "planned")):
        with pytest.raises(Crash):
            Session(options(folder), crash_at(step, 1)).execute(*tables, inserts)
        yield number
