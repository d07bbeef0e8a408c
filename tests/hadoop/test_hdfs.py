"""Files, records, checkpoints and whole jobs in HDFS, as in other stores."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.files.test_exclusive import test_of_many_one_succeeds, test_the_first_one_stays
from tests.files.test_storage import test_moving_and_removing, test_what_is_published_is_there_whole
from tests.hadoop.mini import Hadoop
from tests.runtime.test_store_checkpoint import (
    test_an_epoch_that_was_committed_meanwhile_counts,
    test_an_epoch_under_way_elsewhere_is_closed,
    test_records,
    test_state_is_read_from_copies,
    test_the_collector_in_a_store,
    test_the_later_owner_has_it,
)
from tests.runtime.test_store_job import test_crashes_at_every_step as of_crashes
from tidemill.files.exclusive import exclusive
from tidemill.files.storage import Storage

pytestmark = pytest.mark.thorough

__all__ = [
    "test_an_epoch_that_was_committed_meanwhile_counts",
    "test_an_epoch_under_way_elsewhere_is_closed",
    "test_moving_and_removing",
    "test_of_many_one_succeeds",
    "test_records",
    "test_state_is_read_from_copies",
    "test_the_collector_in_a_store",
    "test_the_first_one_stays",
    "test_the_later_owner_has_it",
    "test_what_is_published_is_there_whole",
]


@pytest.fixture
def place(cluster: Hadoop) -> Storage:
    return Storage(f"{cluster.dfs}/{uuid.uuid4().hex}/job")


@pytest.fixture
def storage(place: Storage) -> Storage:
    return place


def test_nothing_is_left_of_a_lost_race(place: Storage) -> None:
    files = exclusive(place)
    files.put("owners/1", b"mine")
    with pytest.raises(FileExistsError):
        files.put("owners/1", b"other")
    assert [f.path for f in place.files()] == ["owners/1"]


def test_crashes_at_every_step(place: Storage, spark: SparkSession, tmp_path: Path) -> None:
    of_crashes(spark, place, tmp_path)
