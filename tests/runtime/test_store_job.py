"""A whole job in an object store: sources, sinks, state and records; crashed, cut off, and resumed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.cluster.join_job import SCRIPT, totals, write_changes
from tests.google_store import google_bucket
from tests.object_store import SLOW_SECONDS, bucket, faulty_server
from tests.runtime.running import Crash, Session, crash_at
from tidemill.errors import StateError, TidemillError
from tidemill.files import systems
from tidemill.files.exclusive import s3
from tidemill.files.storage import Storage
from tidemill.files.systems import GCS_ENDPOINT

CHANGES = 120
"""Of orders; with epochs of 40 rows that is three epochs."""


class Job:
    """The job in a place of its own; ``expected`` is what it must give."""

    def __init__(self, place: Storage, folder: Path) -> None:
        self.place = place
        settings = dict(place.settings)
        self.expected = write_changes(folder, changes=CHANGES)
        for table in ("customers", "orders"):
            path = f"{table}/changes.json"
            self.place.publish(path, partial(_copy, folder / path))
        given = "".join(f", '{key}' = '{value}'" for key, value in settings.items())
        script = SCRIPT.format(place=self.place.location).replace("-json'", f"-json'{given}")
        *self.tables, self.insert, _ = script.split(";\n")
        self.options = {
            "execution.checkpointing.dir": f"{self.place.location}/checkpoint",
            "tidemill.epoch.max-rows": "40",
            "parallelism.default": "2",
            **settings,
        }

    def run(self, fault: Callable[[str], None] = lambda _: None) -> None:
        Session(self.options, fault).execute(*self.tables, self.insert)

    @property
    def written(self) -> dict[str, tuple[int, int, int]]:
        files = sorted(f.path for f in self.place.files("totals") if "/." not in f.path)
        return totals([line for f in files for line in self.place.read_bytes(f).decode().splitlines()])


def _copy(file: Path, stream: pa.NativeFile) -> None:
    stream.write(file.read_bytes())


@pytest.fixture(params=["object_store", "google_store"])
def place(request: pytest.FixtureRequest) -> Storage:
    return new_place(request.getfixturevalue(request.param))


def new_place(settings: Mapping[str, str]) -> Storage:
    """A bucket of the store that ``settings`` lead to."""
    name = f"job-{uuid.uuid4().hex}"
    if GCS_ENDPOINT in settings:
        google_bucket(settings, name)
        return Storage(f"gs://{name}", tuple(settings.items()))
    bucket(settings, name)
    return Storage(f"s3://{name}", tuple(settings.items()))


def test_crashes_at_every_step(spark: SparkSession, place: Storage, tmp_path: Path) -> None:
    job = Job(place, tmp_path)
    for step in ("planned", "ran", "committed", "published"):
        with pytest.raises(Crash):
            job.run(crash_at(step, 1))
    job.run()
    assert job.written == job.expected


@pytest.mark.thorough
def test_a_store_that_is_slow_and_lists_late(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers come after they were given up, lists lack what was put last; the job crashes and goes on."""
    monkeypatch.setattr(s3, "REQUEST_SECONDS", SLOW_SECONDS / 2)
    with faulty_server() as (settings, faults):
        job = Job(new_place(settings), tmp_path)
        faults.late = True
        for step in ("ran", "committed"):
            crash = crash_at(step, 1)

            def slow(reached: str, crash: Callable[[str], None] = crash) -> None:
                crash(reached)
                faults.slow = 2

            with pytest.raises(Crash):
                job.run(slow)
        job.run()
        faults.late = False
        assert job.written == job.expected


@pytest.mark.thorough
def test_a_store_that_goes_down_and_comes_back(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (s3, systems):
        monkeypatch.setattr(module, "ATTEMPTS", 2)
    with faulty_server() as (settings, faults):
        job = Job(new_place(settings), tmp_path)

        def down(step: str) -> None:
            faults.down = step == "ran"

        with pytest.raises(StateError, match=f"{job.place.location}/checkpoint/.* 500"):
            job.run(down)
        with pytest.raises(TidemillError, match=job.place.location):
            job.run()
        faults.down = False
        job.run()
        assert job.written == job.expected
