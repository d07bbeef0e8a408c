"""What a statement sees of a path, and what comes to it meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tidemill.deep_calls import with_room
from tidemill.files.file_snapshot import file_snapshot, seen_once
from tidemill.files.storage import Storage
from tidemill.session.environment import TableEnvironment


def test_a_place_is_looked_at_once_within_a_snapshot() -> None:
    found = iter(range(10))
    with file_snapshot():
        assert [seen_once(lambda: next(found), place) for place in "aab"] == [0, 0, 1]
        with file_snapshot():
            assert seen_once(lambda: next(found), "a") == 0
        assert seen_once(lambda: next(found), "a") == 0
    assert [seen_once(lambda: next(found), "a") for _ in range(2)] == [2, 3]


def test_what_fails_is_looked_at_again() -> None:
    def fails() -> int:
        raise OSError("not now")

    with file_snapshot():
        with pytest.raises(OSError, match="not now"):
            seen_once(fails, "a")
        assert seen_once(lambda: 1, "a") == 1


def test_another_thread_looks_for_itself() -> None:
    seen: list[int] = []
    with file_snapshot():
        seen_once(lambda: 1, "a")
        thread = threading.Thread(target=lambda: seen.append(seen_once(lambda: 2, "a")))
        thread.start()
        thread.join()
    assert seen == [2]


def test_a_deep_call_is_within_the_snapshot() -> None:
    def deep(levels: int) -> int:
        return deep(levels - 1) if levels else seen_once(lambda: 2, "a")

    with file_snapshot():
        assert seen_once(lambda: 1, "a") == 1
        assert with_room(lambda: deep(5000)) == 1
    assert with_room(lambda: deep(5000)) == 2


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_all_scans_of_a_query_see_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """A writer that comes in whenever somebody has looked."""
    environment = TableEnvironment.create({"execution.runtime-mode": "batch"})
    for name, folder in (("t", "t"), ("more", "more")):
        environment.execute_sql(
            f"CREATE TABLE {name} (x INT) WITH ('connector' = 'filesystem',"
            f" 'path' = '{tmp_path}/{folder}', 'format' = '{form}')"
        )
        environment.execute_sql(f"INSERT INTO {name} VALUES (1)").wait()
    (more,) = [p for p in (tmp_path / "more").iterdir() if not p.name.startswith((".", "_"))]
    looks = 0
    listed = Storage.files

    def files(storage: Storage, relative: str = "", **options: Any) -> object:
        nonlocal looks
        found = list(listed(storage, relative, **options))
        if storage.location == f"{tmp_path}/t" and not relative:
            looks += 1
            (tmp_path / f"t/late-{looks}{more.suffix}").write_bytes(more.read_bytes())
        return iter(found)

    monkeypatch.setattr(Storage, "files", files)
    query = "SELECT COUNT(*), (SELECT COUNT(*) FROM t) FROM t a JOIN t b ON a.x = b.x"
    assert [tuple(row) for row in environment.execute_sql(query).collect()] == [(1, 1)]
    assert looks == 1
    assert [tuple(row) for row in environment.execute_sql(query).collect()] == [(4, 2)]
