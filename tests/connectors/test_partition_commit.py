"""When partitions get their marker file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.connectors.sinks import sink
from tests.connectors.sources import table
from tidemill.connectors.filesystem.partition_commit import AfterDelay, AfterLaterPartition, PartitionMarkers
from tidemill.connectors.filesystem.sink import FileSink
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.types import logical as t

HOURLY = {
    "sink.partition-commit.policy.kind": "success-file",
    "sink.partition-commit.trigger": "partition-time",
    "sink.partition-commit.delay": "1 h",
    "partition.time-extractor.timestamp-pattern": "$dt $hm:00",
}


def markers(folder: Path, options: dict[str, str]) -> PartitionMarkers:
    declared = table(
        {"a": t.INT, "dt": t.STRING, "hm": t.STRING},
        {"connector": "filesystem", "path": str(folder), "format": "csv", **options},
        partitioned_by=("dt", "hm"),
    )
    made = sink(declared)
    assert isinstance(made, FileSink)
    return made.markers


def put(folder: Path, *directories: str) -> list[str]:
    for directory in directories:
        (folder / directory).mkdir(parents=True, exist_ok=True)
        (folder / directory / "part-job-00000001-0-0.csv").write_text("1\n")
    return list(directories)


def marked(folder: Path) -> list[str]:
    return sorted(str(p.parent.relative_to(folder)) for p in folder.rglob("_SUCCESS"))


def test_a_partition_is_complete_when_one_has_come_that_is_later_than_the_delay(tmp_path: Path) -> None:
    found = markers(tmp_path, HOURLY)
    first, second, third = (f"dt=2020-01-01/hm={h}%3A00" for h in ("22", "23", "00"))
    third = third.replace("01-01", "01-02")
    found.written(put(tmp_path, second))
    found.written(put(tmp_path, first))
    assert marked(tmp_path) == []
    found.written(put(tmp_path, third))
    assert marked(tmp_path) == [first]
    found.finish()
    assert marked(tmp_path) == [first, second, third]


def test_what_is_pending_is_known_after_a_restart(tmp_path: Path) -> None:
    old = put(tmp_path, "dt=2020-01-01/hm=22%3A00", "dt=2020-01-01/hm=__DEFAULT_PARTITION__")
    markers(tmp_path, HOURLY).written(old)
    again = markers(tmp_path, HOURLY)
    again.written(put(tmp_path, "dt=2020-01-03/hm=10%3A00"))
    assert marked(tmp_path) == old[:1]
    again.finish()
    assert old[1] in marked(tmp_path)


def test_what_a_job_before_left_pending_is_known(tmp_path: Path) -> None:
    """By way of a savepoint the job has another id."""
    old = put(tmp_path, "dt=2020-01-01/hm=22%3A00")
    unknown = replace(markers(tmp_path, HOURLY), prefixes=("part-new-",))
    unknown.finish()
    assert marked(tmp_path) == []
    known = replace(markers(tmp_path, HOURLY), prefixes=("part-new-", "part-job-"))
    known.finish()
    assert marked(tmp_path) == old


def test_a_partition_is_complete_after_the_delay_since_its_first_file(tmp_path: Path) -> None:
    clock = iter([1_000, 1_500, 2_000, 9_000])
    found = PartitionMarkers(
        storage=Storage(str(tmp_path)),
        file="_SUCCESS",
        trigger=AfterDelay(delay=1_000),
        prefixes=("part-job-",),
        clock=lambda: next(clock),
        pending={},
    )
    found.written(put(tmp_path, "dt=a"))
    found.written(put(tmp_path, "dt=a", "dt=b"))
    assert marked(tmp_path) == []
    found.written([])
    assert marked(tmp_path) == ["dt=a"]
    found.written([])
    assert marked(tmp_path) == ["dt=a", "dt=b"]


def test_dates_are_times_and_the_longest_column_name_is_put_in_first() -> None:
    daily = AfterLaterPartition(delay=0, pattern="$day_of")
    assert daily.due({"day=x/day_of=2020-01-01": 0, "day=x/day_of=2020-01-02": 0}, 0) == [
        "day=x/day_of=2020-01-01"
    ]


def test_without_a_policy_nothing_is_marked(tmp_path: Path) -> None:
    found = markers(tmp_path, HOURLY | {"sink.partition-commit.policy.kind": ""})
    found.written(put(tmp_path, "dt=2020-01-01/hm=22%3A00"))
    found.finish()
    assert marked(tmp_path) == []


def test_extractors_of_flink_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError, match=r"time-extractor\.kind"):
        markers(tmp_path, HOURLY | {"partition.time-extractor.kind": "custom"})
    with pytest.raises(NotSupportedError, match="timestamp-formatter"):
        markers(tmp_path, HOURLY | {"partition.time-extractor.timestamp-formatter": "yyyy"})
    with pytest.raises(ValidationError, match="no partition column"):
        markers(tmp_path, HOURLY | {"partition.time-extractor.timestamp-pattern": "2020-01-01"})


@pytest.mark.parametrize("name", ["../../other", "/etc/x", "..", ""])
def test_a_marker_stays_in_its_partition(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of a file in a partition"):
        markers(tmp_path, {**HOURLY, "sink.partition-commit.success-file.name": name})
