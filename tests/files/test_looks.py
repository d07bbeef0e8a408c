"""What a statement sees of a path, and what comes to it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemill.files.looks import believed, check_believed, is_in_doubt, one_look, seen_once, with_one_look
from tidemill.files.storage import Storage
from tidemill.session.environment import TableEnvironment


def test_a_place_is_looked_at_once_within_a_look() -> None:
    found = iter(range(10))
    with one_look():
        assert [seen_once(lambda: next(found), place) for place in "aab"] == [0, 0, 1]
        with one_look():
            assert seen_once(lambda: next(found), "a") == 0
        assert seen_once(lambda: next(found), "a") == 0
    assert [seen_once(lambda: next(found), "a") for _ in range(2)] == [2, 3]


def test_what_fails_is_looked_at_again() -> None:
    def fails() -> int:
        raise OSError("not now")

    with one_look():
        with pytest.raises(OSError, match="not now"):
            seen_once(fails, "a")
        assert seen_once(lambda: 1, "a") == 1


def test_another_thread_looks_for_itself() -> None:
    seen: list[int] = []
    with one_look():
        seen_once(lambda: 1, "a")
        thread = threading.Thread(target=lambda: seen.append(seen_once(lambda: 2, "a")))
        thread.start()
        thread.join()
    assert seen == [2]


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

    def files(storage: Storage, *args: object, **options: object) -> object:
        nonlocal looks
        found = list(listed(storage, *args, **options))  # type: ignore[arg-type]
        if storage.location == f"{tmp_path}/t":
            looks += 1
            (tmp_path / f"t/late-{looks}{more.suffix}").write_bytes(more.read_bytes())
        return iter(found)

    monkeypatch.setattr(Storage, "files", files)
    query = "SELECT COUNT(*), (SELECT COUNT(*) FROM t) FROM t a JOIN t b ON a.x = b.x"
    assert [tuple(row) for row in environment.execute_sql(query).collect()] == [(1, 1)]
    assert looks == 1
    assert [tuple(row) for row in environment.execute_sql(query).collect()] == [(4, 2)]


def test_what_is_believed_is_asked_by_another_thread() -> None:
    threads: set[int] = set()

    def holds() -> bool:
        threads.add(threading.get_ident())
        return True

    def do() -> str:
        assert not is_in_doubt()
        assert believed(holds)
        assert is_in_doubt()
        check_believed()
        assert not is_in_doubt()
        return "done"

    assert with_one_look(do) == "done"
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_who_was_wrong_begins_again_and_believes_nothing() -> None:
    """Whether or not who believed has asked, or has failed for it."""

    def doing(end: Callable[[], str]) -> tuple[Callable[[], str], list[bool]]:
        said: list[bool] = []

        def do() -> str:
            said.append(believed(lambda: False))
            return end() if said[-1] else "looked"

        return do, said

    def checks() -> str:
        check_believed()
        return "never"

    def fails() -> str:
        raise ValueError("for what it believed")

    for end in (lambda: "believed", checks, fails):
        do, said = doing(end)
        assert with_one_look(do) == "looked"
        assert said == [True, False]


def test_who_was_right_fails_once() -> None:
    said: list[bool] = []

    def fails() -> None:
        said.append(believed(lambda: True))
        raise ValueError("on its own")

    with pytest.raises(ValueError, match="on its own"):
        with_one_look(fails)
    assert said == [True]


def test_a_look_that_fails_is_an_error() -> None:
    def looks() -> bool:
        raise MemoryError("no room to look")

    with pytest.raises(MemoryError, match="no room"):
        with_one_look(lambda: believed(looks))


def test_looks_within_looks() -> None:
    """The outer one says what may be believed, and begins again."""
    said: list[bool] = []

    def do() -> None:
        said.append(believed(lambda: False))

    with one_look():
        with_one_look(do)
    assert said == [False]
    with_one_look(lambda: with_one_look(do))
    assert said == [False, True, False]
    assert not believed(lambda: True)
    check_believed()


def test_an_interrupt_does_not_begin_again() -> None:
    said: list[bool] = []

    def interrupted() -> None:
        said.append(believed(lambda: False))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_one_look(interrupted)
    assert said == [True]
    assert not believed(lambda: True)
