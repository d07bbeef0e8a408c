"""Files that change while a job reads them: appended lines are read, anything else is an error."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.sources import source, table
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.filesystem.listing import list_files
from tidemill.connectors.filesystem.replacing import Change, commit
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.filesystem.taken_log import SEGMENT
from tidemill.connectors.filesystem.watching import CHECKED
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError, StateError
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage
from tidemill.types import logical as t

NOW = 2_000_000_000.0


def files(path: Path, kind: str = "csv", *, watched: bool = True, sequence: bool = False) -> FileSource:
    options = {"connector": "filesystem", "path": str(path), "format": kind}
    options |= {"source.monitor-interval": "10 s"} if watched else {}
    made = source(table({"a": t.INT, "b": t.STRING}, options), streaming=True, sequence=sequence)
    assert isinstance(made, FileSource)
    return replace(made, clock=lambda: NOW)


def taken(read: FileSource, start: Offset | None, end: Offset) -> list[tuple[Any, ...]]:
    """The rows of a range, read here."""
    rows: list[tuple[Any, ...]] = []
    for task in read.tasks(start, end):
        for batch in read.reader.read(task.splits, task.before):
            rows += [tuple(r.values()) for r in pa.Table.from_batches([batch]).to_pylist()]
    return rows


def step(read: FileSource, start: Offset | None) -> tuple[Offset, list[tuple[Any, ...]]]:
    end: Offset = json.loads(json.dumps(read.next_offset(start, ReadLimit())))
    return end, taken(read, start, end)


def write(path: Path, text: str, *, append: bool = False, age: float = 100) -> None:
    """``age`` in seconds before NOW."""
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(text)
    os.utime(path, (NOW - age, NOW - age))


def test_appended_lines_are_read_once_each(tmp_path: Path) -> None:
    read = files(tmp_path, sequence=True)
    write(tmp_path / "x.csv", "1,a\n2,b\n")
    start, rows = step(read, None)
    write(tmp_path / "x.csv", "3,c\n", append=True, age=90)
    write(tmp_path / "y.csv", "9,z\n")
    start, more = step(read, start)
    write(tmp_path / "x.csv", "4,d\n", append=True, age=80)
    start, last = step(files(tmp_path, sequence=True), start)
    found = rows + more + last
    assert [r[:2] for r in found] == [(1, "a"), (2, "b"), (9, "z"), (3, "c"), (4, "d")]
    assert [r[2] for r in found] == sorted({r[2] for r in found})
    assert step(read, start)[1] == []


def test_a_directory_that_may_not_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dt=1").mkdir()
    write(tmp_path / "dt=1" / "x.csv", "1,a\n")
    read = files(tmp_path)
    scan = os.scandir

    def refused(path: str) -> Any:
        if path.endswith("dt=1"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(ConnectorError, match=r"Cannot list .*dt=1: .*Permission denied"):
        step(read, None)
    monkeypatch.setattr(os, "scandir", scan)
    assert step(read, None)[1] == [(1, "a")]


def test_a_line_that_is_being_written_is_left_until_it_is_whole(tmp_path: Path) -> None:
    read = files(tmp_path)
    write(tmp_path / "x.csv", "1,a\n2,b", age=1)
    start, rows = step(read, None)
    assert rows == [(1, "a")]
    assert step(read, start)[1] == []
    write(tmp_path / "x.csv", "cd\n3,", append=True, age=0)
    start, rows = step(read, start)
    assert rows == [(2, "bcd")]
    write(tmp_path / "x.csv", "e", append=True, age=50)
    start, rows = step(read, start)
    assert rows == [(3, "e")]
    write(tmp_path / "x.csv", "\n4,f\n", append=True, age=40)
    start, rows = step(read, start)
    assert rows == [(4, "f")]


def test_a_line_that_went_on_after_it_was_read(tmp_path: Path) -> None:
    read = files(tmp_path)
    write(tmp_path / "x.csv", "1,a")
    start, rows = step(read, None)
    assert rows == [(1, "a")]
    write(tmp_path / "x.csv", "bc\n", append=True, age=50)
    with pytest.raises(ConnectorError, match=r"x\.csv: its last line was read before the line was complete"):
        step(read, start)


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize(
    ("text", "age"),
    [("1,a\n3,c\n", 50), ("1,a\n3,c\n", 100), ("1,a\n", 50), ("0,a\n2,b\n3,c\n", 50), ("", 50)],
)
def test_a_file_that_was_written_again(tmp_path: Path, watched: bool, text: str, age: float) -> None:
    """At the same size, even at the same time, shorter, or longer with another beginning."""
    read = files(tmp_path, watched=watched)
    write(tmp_path / "x.csv", "1,a\n2,b\n")
    start, _ = step(read, None)
    write(tmp_path / "x.csv", text, age=age)
    with pytest.raises((WorkerError, ConnectorError), match="has changed since it was read"):
        taken(read, None, start)
    if (text, age) != ("1,a\n3,c\n", 100):  # neither size nor time tell: only who reads it again sees it
        with pytest.raises(ConnectorError, match=r"x\.csv has changed since it was read"):
            step(files(tmp_path, watched=watched), start)


def test_what_is_appended_to_a_bounded_table_is_an_error(tmp_path: Path) -> None:
    read = files(tmp_path, watched=False)
    write(tmp_path / "x.csv", "1,a\n")
    start, _ = step(read, None)
    write(tmp_path / "x.csv", "2,b\n", append=True)
    with pytest.raises(ConnectorError, match="had 4 bytes, now it has 8"):
        read.is_finished(start)


def test_another_path_is_another_table(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "x.csv", "1,a\n")
    start, _ = step(files(tmp_path / "one"), None)
    with pytest.raises(StateError, match=r"with the path '.*one'; the path is now '.*two'"):
        step(files(tmp_path / "two"), start)


def test_offsets_stay_small_however_many_files_were_taken(tmp_path: Path) -> None:
    data, kept = tmp_path / "data", Storage(str(tmp_path / "kept"))
    data.mkdir()
    start: Offset | None = None
    count, sizes, read = 0, [], files(data)
    read.record_in(kept)
    for epoch in range(40):
        for _ in range(10):
            write(data / f"{(count * 7919) % 1000:04d}.csv", f"{count},x\n")
            count += 1
        if epoch % 7 == 3:  # a job that starts again
            read = files(data)
            read.record_in(kept)
        start, rows = step(read, start)
        assert sorted(r[0] for r in rows) == list(range(count - 10, count))
        sizes.append(len(json.dumps(start)))
    assert max(sizes) < (SEGMENT + 11) * 120
    assert len(list(kept.files())) == (count - 10) // SEGMENT
    again = files(data)
    again.record_in(kept)
    assert step(again, start)[1] == []


def test_a_directory_is_read_again_only_where_something_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "live"):
        (tmp_path / name).mkdir()
        for n in range(CHECKED):
            write(tmp_path / name / f"{n:04d}.csv", f"{n},x\n")
    for name in ("old", "live", "."):
        os.utime(tmp_path / name, (NOW - 10**9, NOW - 10**9))
    read = files(tmp_path)
    start, rows = step(read, None)
    assert len(rows) == 2 * CHECKED
    looked: list[str] = []
    stat, scandir = Storage.stat, os.scandir

    def looking(storage: Storage, path: str) -> FileEntry | None:
        looked.append(path)
        return stat(storage, path)

    def scanning(path: str) -> Any:
        looked.append(f"{path}/")
        return scandir(path)

    monkeypatch.setattr(Storage, "stat", looking)
    monkeypatch.setattr(os, "scandir", scanning)
    write(tmp_path / "live" / "new.csv", "7,new\n")
    end = read.next_offset(start, ReadLimit())
    assert taken(read, start, end) == [(7, "new")]
    looked_into = {p for p in looked if p.endswith("/")}
    assert looked_into == {f"{tmp_path}/live/", f"{tmp_path}/.changes/"}
    assert len(looked) <= CHECKED + 10


def test_what_a_limit_left_is_taken_later(tmp_path: Path) -> None:
    read = files(tmp_path)
    for n in (3, 1, 2):
        write(tmp_path / f"{n}.csv", f"{n},x\n")
    start, found = None, []
    for _ in range(3):
        end = read.next_offset(start, ReadLimit(rows=1))
        found += taken(read, start, end)
        start = end
    assert found == [(1, "x"), (2, "x"), (3, "x")]


def test_records_that_are_lost_or_changed_are_an_error(tmp_path: Path) -> None:
    data, kept = tmp_path / "data", tmp_path / "kept"
    data.mkdir()
    for n in range(3 * SEGMENT):
        write(data / f"{n:04d}.csv", f"{n},x\n")
    read = files(data)
    read.record_in(Storage(str(kept)))
    start, _ = step(read, None)
    start, _ = step(read, start)
    record = kept / "taken-000001.json"
    good = record.read_bytes()
    for damage in (good.replace(b"0070", b"0071"), good[:-10], b""):
        record.write_bytes(damage)
        again = files(data)
        again.record_in(Storage(str(kept)))
        with pytest.raises(StateError, match="have been changed"):
            again.next_offset(start, ReadLimit())
    record.unlink()
    with pytest.raises(StateError, match="cannot be read"):
        again.next_offset(start, ReadLimit())


def test_a_failed_epoch_is_planned_anew(tmp_path: Path) -> None:
    """What a plan that was taken back took is taken again, though memory has seen it."""
    data, kept = tmp_path / "data", Storage(str(tmp_path / "kept"))
    data.mkdir()
    read = files(data)
    read.record_in(kept)
    for n in range(2 * SEGMENT):
        write(data / f"{n:04d}.csv", f"{n},x\n")
    start, _ = step(read, None)
    write(data / "a.csv", "7,x\n")
    step(read, start)
    write(data / "b.csv", "8,x\n")
    end, rows = step(read, start)
    assert rows == [(7, "x"), (8, "x")]
    assert step(read, end)[1] == []


def test_the_first_bad_record_of_a_file_that_many_tasks_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.connectors.filesystem.source._TASK_BYTES", 64)
    for kind, good, bad in (("csv", '%d,"q"\n', "bad,x\n"), ("json", '{"a":%d}\n', '{"a":"bad"}\n')):
        lines = [good % n for n in range(200)]
        lines[31] = lines[150] = bad
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "x").write_text("".join(lines))
        read = files(tmp_path / kind, kind, watched=False)
        read = replace(read, parallelism=20)
        tasks = read.tasks(None, read.next_offset(None, ReadLimit()))
        assert len(tasks) > 10
        for task in tasks:
            try:
                list(read.reader.read(task.splits, task.before))
            except WorkerError as e:
                assert "/x:32)" in str(e)  # noqa: PT017 - most tasks read without an error


def halfway(tmp_path: Path, text: str) -> tuple[Path, Storage, Offset]:
    """A job that read two lines of ``text`` and stopped."""
    data, kept = tmp_path / "data", Storage(str(tmp_path / "kept"))
    data.mkdir()
    write(data / "x.csv", text)
    read = files(data, watched=False, sequence=True)
    read.record_in(kept)
    start = read.next_offset(None, ReadLimit(rows=2))
    assert [row[:2] for row in taken(read, None, start)] == [(1, "a"), (2, "b")]
    read.stopped(start)
    return data, kept, start


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,a\n2,b\n3,c\n4,d\n", [(3, "c"), (4, "d")]),
        ("1,a\n2,b\n3,cc\n", [(3, "cc")]),
        ("1,a\n2,b\n", []),
    ],
)
def test_what_was_not_read_may_be_repaired(tmp_path: Path, text: str, rows: list[tuple[int, str]]) -> None:
    data, kept, start = halfway(tmp_path, "1,a\n2,b\nx,c\n4,d\n")
    write(data / "x.csv", text, age=50)
    write(data / "y.csv", "9,z\n")
    read = files(data, watched=False, sequence=True)
    read.record_in(kept)
    end, found = step(read, start)
    assert [row[:2] for row in found] == [*rows, (9, "z")]
    assert read.is_finished(end)
    assert step(files(data, watched=False, sequence=True), end)[1] == []
    numbers = [row[2] for row in found]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 1


@pytest.mark.parametrize("text", ["1,a\n2,B\n3,c\n4,d\n", "1,a\n", ""])
def test_what_was_read_must_stay(tmp_path: Path, text: str) -> None:
    data, kept, start = halfway(tmp_path, "1,a\n2,b\nx,c\n4,d\n")
    write(data / "x.csv", text, age=50)
    read = files(data, watched=False, sequence=True)
    read.record_in(kept)
    with pytest.raises(ConnectorError, match="has changed since it was read"):
        step(read, start)


def test_a_file_that_changed_before_the_stop_is_not_taken_for_what_was_read(tmp_path: Path) -> None:
    data, _, start = halfway(tmp_path, "1,a\n2,b\nx,c\n4,d\n")
    read = files(data, watched=False, sequence=True)
    read.record_in(Storage(str(tmp_path / "other")))
    write(data / "x.csv", "0,q\n2,b\n3,c\n4,d\n", age=50)
    read.stopped(start)
    with pytest.raises(ConnectorError, match="has changed since it was read"):
        step(read, start)


def replaced(path: Path, old: str, text: str) -> None:
    """The file ``old`` goes and ``new.csv`` comes, as by a DELETE or UPDATE."""
    storage = Storage(str(path))
    write(path / ".staged.csv", text)
    removed = tuple(entry for entry in list_files(storage) if entry.path == old)
    commit(storage, Change(statement="DELETE", added=(("new.csv", ".staged.csv"),), removed=removed))


@pytest.mark.parametrize("watched", [False, True])
def test_a_statement_that_changes_rows_that_were_read_stops_the_job(tmp_path: Path, *, watched: bool) -> None:
    """The same job, and one that starts again. A job without the file reads the new one."""
    read = files(tmp_path, watched=watched)
    write(tmp_path / "x.csv", "1,a\n2,b\n")
    position, _ = step(read, None)
    replaced(tmp_path, "x.csv", "2,b\n")
    for job in (read, files(tmp_path, watched=watched)):
        with pytest.raises(ConnectorError, match=r"DELETE has changed rows of the file .*x\.csv, which"):
            step(job, position)
    position, rows = step(files(tmp_path, watched=watched), None)
    assert rows == [(2, "b")]
    write(tmp_path / "x.csv", "3,c\n", age=50)  # another file of that name
    if watched:
        assert step(files(tmp_path, watched=True), position)[1] == [(3, "c")]


def test_a_statement_that_changes_rows_that_come_next_is_seen(tmp_path: Path) -> None:
    """A watched directory gives the new file; a first listing has the old one, whose rows would be lost."""
    write(tmp_path / "a.csv", "1,a\n")
    write(tmp_path / "x.csv", "2,b\n3,c\n")
    reads = {watched: files(tmp_path, watched=watched) for watched in (False, True)}
    starts = {watched: read.next_offset(None, ReadLimit(rows=1)) for watched, read in reads.items()}
    replaced(tmp_path, "x.csv", "3,c\n")
    assert step(reads[True], starts[True])[1] == [(3, "c")]
    with pytest.raises(ConnectorError, match=r"DELETE has changed rows of the file .*x\.csv"):
        step(reads[False], starts[False])
