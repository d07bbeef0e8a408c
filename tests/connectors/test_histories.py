"""Sources read once more up to an offset: the same rows as then, whatever has come since; refused where they
are gone."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.connectors.lake import rows as lake_rows
from tests.connectors.sources import source, table
from tests.connectors.test_changing_files import NOW, files, taken, write
from tests.connectors.test_kafka_planning import Topics
from tests.connectors.test_kafka_planning import source as kafka
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.filesystem.source import FileHistory, FileSource
from tidemill.connectors.filesystem.taken_log import SEGMENT
from tidemill.connectors.generated import GeneratedSource
from tidemill.connectors.kafka.offsets import ranges
from tidemill.connectors.lakehouse.source import LakeHistory, LakeSource
from tidemill.errors import StateError
from tidemill.files.storage import Storage
from tidemill.types import logical as t


def steps(read: Any, limit: ReadLimit, start: Offset | None = None) -> list[Offset]:
    """The ends of all ranges."""
    found: list[Offset] = []
    while True:
        end = read.next_offset(found[-1] if found else start, limit)
        if read.is_empty(found[-1] if found else start, end):
            return found
        found.append(end)


def file_rows(read: FileSource, ends: list[Offset]) -> list[tuple[Any, ...]]:
    starts = [None, *ends]
    return [row for start, end in zip(starts, ends, strict=False) for row in taken(read, start, end)]


@pytest.mark.parametrize("seed", range(5))
def test_files_come_in_the_order_in_which_they_were_taken(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    where = tmp_path / "in"
    where.mkdir()
    read, ends = files(where, sequence=True), list[Offset]()
    read.record_in(Storage(str(tmp_path / "log")))
    for number in range(chance.choice([5, SEGMENT + 40])):
        # Names do not say the order, and some files grow.
        name = f"{chance.choice('abc')}{number if chance.random() < 0.8 else 0}.csv"
        write(where / name, f"{number},x\n{number},y\n", append=True, age=1000 - number)
        limit = ReadLimit(bytes=chance.choice([None, 4, 8]))
        end = read.next_offset(ends[-1] if ends else None, limit)
        ends += [] if read.is_empty(ends[-1] if ends else None, end) else [end]
    expected = file_rows(read, ends)
    write(where / "later.csv", "99,z\n")
    again = files(where, sequence=True)
    again.record_in(Storage(str(tmp_path / "log")))
    for limit in (ReadLimit(), ReadLimit(bytes=5), ReadLimit(rows=3)):
        history = again.remembered(ends[-1], ended=False)
        middle = again.remembered(ends[len(ends) // 2], ended=False)
        first = steps(middle, limit)
        found = file_rows(again, [*first, *steps(history, limit, first[-1])])
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        assert sorted(row[2] for row in found) == [row[2] for row in found]
        assert not history.is_bounded


def test_files_that_are_gone_or_others_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "1,a\n")
    write(tmp_path / "b.csv", "2,b\n")
    read = files(tmp_path)
    end = read.next_offset(None, ReadLimit())
    write(tmp_path / "a.csv", "3,a\n")
    with pytest.raises(StateError, match=r"a\.csv has changed since it was read: it was rewritten"):
        read.remembered(end, ended=False)
    os.remove(tmp_path / "b.csv")
    write(tmp_path / "a.csv", "1,a\n")
    with pytest.raises(StateError, match=r"file .*b\.csv, of 2033-05-18 .*, was removed"):
        read.remembered(end, ended=False)
    assert NOW == 2_000_000_000


def test_a_bounded_source_that_had_ended_ends() -> None:
    path = {"connector": "datagen", "number-of-rows": "10"}
    read = source(table({"a": t.INT}, path), streaming=True)
    assert isinstance(read, GeneratedSource)
    for ended in (True, False):
        history = read.remembered({"row": 7, "time": 0}, ended=ended)
        assert history.next_offset(None, ReadLimit())["row"] == 7
        assert history.is_finished({"row": 7, "time": 0}) is ended
    timed = source(
        table({"a": t.LocalZonedTimestampType(precision=3)}, {"connector": "datagen"}), streaming=True
    )
    assert isinstance(timed, GeneratedSource)
    with pytest.raises(StateError, match="the time of their generation"):
        timed.remembered({"row": 7, "time": 0}, ended=False)


def test_messages_are_read_from_where_the_job_began() -> None:
    topics = Topics({0: 30, 1: 10}, {0: 5})
    read = kafka(topics)
    end = read.next_offset(None, ReadLimit())
    topics.ends[0] = 90
    history = read.remembered(end, ended=False)
    ends = steps(history, ReadLimit(rows=8))
    assert len(ends) == 5
    assert ends[-1] == end
    assert [(r.partition, r.start, r.end) for r in ranges(None, ends[-1])] == [(0, 5, 30), (1, 0, 10)]
    topics.firsts[0] = 6
    with pytest.raises(
        StateError, match="'t', partition 0 begins at offset 6 now, and was read from offset 5"
    ):
        read.remembered(end, ended=False)
    topics.firsts[0], topics.id = 5, "two"
    with pytest.raises(StateError, match="'t' was deleted and created again"):
        read.remembered(end, ended=False)


def test_messages_of_new_partitions_follow() -> None:
    topics = Topics({0: 4})
    read = kafka(topics)
    first = read.next_offset(None, ReadLimit())
    topics.ends |= {0: 6, 1: 3}
    read.clock = lambda: 1e9
    last = read.next_offset(first, ReadLimit())
    (reached,) = steps(read.remembered(first, ended=False), ReadLimit())
    assert reached == first
    assert steps(read.remembered(last, ended=False), ReadLimit(), reached) == [last]
    assert [(r.partition, r.start, r.end) for r in ranges(reached, last)] == [(0, 4, 6), (1, 0, 3)]


def test_messages_that_were_skipped_are_no_history() -> None:
    topics = Topics({0: 30})
    read = kafka(topics, reset="earliest")
    start = read.next_offset(None, ReadLimit(rows=10))
    topics.firsts[0] = 20
    with pytest.raises(StateError, match="offsets were skipped"):
        read.remembered(read.next_offset(start, ReadLimit()), ended=False)


def test_versions_are_read_up_to_the_place(tmp_path: Path) -> None:
    for n in range(3):
        write_deltalake(str(tmp_path), pa.table({"a": pa.array([n, n + 10], pa.int32())}), mode="append")
    options = {"connector": "delta", "table-path": str(tmp_path), "mode": "streaming"}
    read = source(table({"a": t.INT}, options), streaming=True)
    assert isinstance(read, LakeSource)
    end = read.next_offset(None, ReadLimit(rows=5))
    write_deltalake(str(tmp_path), pa.table({"a": pa.array([99], pa.int32())}), mode="append")
    for limit in (ReadLimit(), ReadLimit(rows=1)):
        history = read.remembered(end, ended=False)
        assert isinstance(history, LakeHistory)
        ends = steps(history, limit)
        assert lake_rows(read, None, ends[-1]) == lake_rows(read, None, end)
        assert len(ends) == (1 if limit.rows is None else 5)
    (version,) = (tmp_path / "_delta_log").glob("*0.json")
    os.remove(version)
    again = source(table({"a": t.INT}, options), streaming=True)
    assert isinstance(again, LakeSource)
    with pytest.raises(StateError):
        again.remembered(end, ended=False)


def test_who_reads_a_history_sees_a_source(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "1,a\n")
    read = files(tmp_path)
    history = read.remembered(read.next_offset(None, ReadLimit()), ended=True)
    assert isinstance(history, FileHistory)
    assert history.is_finished(history.next_offset(None, ReadLimit()))
