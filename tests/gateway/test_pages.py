"""Pages: each row once and in order, again by the same token, bounded in memory."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.gateway.fakes import numbers, pages
from tidemill.errors import ExecutionError
from tidemill.gateway.api import GatewayError, TokenError
from tidemill.gateway.service.pages import PAGE_ROWS, Pages, restored


def values(made: Pages, token: int, most: int = PAGE_ROWS) -> list[int] | None:
    page = made.fetch(token, most)
    return None if page.rows is None else page.rows.column(0).to_pylist()


def test_every_row_comes_once_and_in_order_from_memory_and_disk(tmp_path: Path) -> None:
    made = pages(tmp_path, memory=40_000)
    made.put(numbers(0, 4_000))
    made.put(numbers(4_000, 31_000))
    made.put(numbers(31_000, 31_001))
    made.finish()
    assert sorted(p.name for p in (tmp_path / "result").iterdir()) == ["4000-216000.arrow"]
    got: list[int] = []
    token = 0
    while (rows := values(made, token, 1_300)) is not None:
        assert 0 < len(rows) <= 1_300
        assert values(made, token, 9) == rows
        got += rows
        token += 1
    assert got == list(range(31_001))
    assert values(made, token) is None
    made.rewind()
    assert values(made, 0, 2) == [0, 1]
    made.close()
    assert not (tmp_path / "result").exists()
    with pytest.raises(GatewayError, match="closed"):
        made.fetch(1)


def test_only_the_last_token_and_the_next_are_known(tmp_path: Path) -> None:
    made = pages(tmp_path)
    with pytest.raises(TokenError, match="Expecting token to be 0, but found 1"):
        made.fetch(1)
    made.put(numbers(0, 6))
    assert [values(made, n, 2) for n in (0, 1, 1, 2)] == [[0, 1], [2, 3], [2, 3], [4, 5]]
    for token in (0, 1, 4, 1 << 60):
        with pytest.raises(TokenError, match=f"Expecting token to be 3 or 2, but found {token}"):
            made.fetch(token)
    assert values(made, 2) == [4, 5]
    assert values(made, 3) == []
    made.finish()
    assert values(made, 4) is None
    assert values(made, 3) == []
    assert values(made, 4) is None


def test_an_endless_result_forgets_what_was_read(tmp_path: Path) -> None:
    made = pages(tmp_path, memory=0, keep=False)
    for start in range(0, 40, 10):
        made.put(numbers(start, start + 10))
    assert values(made, 0, 15) == list(range(15))
    assert values(made, 1, 15) == list(range(15, 30))
    assert sorted(p.name for p in (tmp_path / "result").iterdir()) == [
        "10-80.arrow",
        "20-80.arrow",
        "30-80.arrow",
    ]
    assert values(made, 1, 15) == list(range(15, 30))
    assert values(made, 2) == list(range(30, 40))
    assert values(made, 3) == []
    assert list((tmp_path / "result").iterdir()) == []
    with pytest.raises(GatewayError, match="not kept"):
        made.rewind()


def test_who_makes_rows_waits_for_a_slow_reader_and_is_told_when_he_has_gone(tmp_path: Path) -> None:
    made = pages(tmp_path, ahead=800, keep=False)
    put: list[tuple[int, bool]] = []

    def fill() -> None:
        for n in (0, 1, 2):
            put.append((n, made.put(numbers(n, n + 100))))

    thread = threading.Thread(target=fill)
    thread.start()
    made.wait_rows(60)
    assert values(made, 0, 100) == list(range(100))
    made.wait_rows(60)
    assert values(made, 1, 100) == list(range(1, 101))
    made.wait_rows(60)
    thread.join(60)
    assert put == [(0, True), (1, True), (2, True)]
    waiting = threading.Thread(target=lambda: put.append((3, made.put(numbers(0, 1)))))
    waiting.start()
    made.close()
    waiting.join(60)
    assert put[-1] == (3, False)


@pytest.mark.parametrize("keep", [True, False])
def test_a_complete_result_is_found_by_another_process_at_any_token(tmp_path: Path, keep: bool) -> None:
    first = pages(tmp_path, memory=20_000, keep=keep, durable=True)
    assert not restored(pages(tmp_path, keep=keep), "")
    for start in range(0, 1_000, 100):
        first.put(numbers(start, start + 100))
    read = [values(first, token, 150) for token in range(4)]
    first.finish()
    for token in (4, 3, 0):
        again = pages(tmp_path, keep=keep, durable=True)
        assert restored(again, "")
        if token < 4:
            assert values(again, token, 150) == read[token]
        else:
            assert values(again, token, 150) == list(range(600, 750))
        assert values(again, token, 150) is not None
        assert values(again, token + 1, 150) is not None
    lost = pages(tmp_path, keep=keep)
    assert restored(lost, "")
    with pytest.raises(TokenError):
        lost.fetch(99)
    first.close()
    assert not restored(pages(tmp_path, keep=keep), "")


def test_a_small_result_is_kept_as_text_and_leaves_no_file(tmp_path: Path) -> None:
    made = pages(tmp_path, durable=True)
    made.put(numbers(0, 300))
    assert (made.small_rows(), made.is_light) == ("", False)
    made.finish()
    kept = made.small_rows()
    for token, rows in ((2, range(200, 300)), (0, range(100))):
        again = pages(tmp_path, durable=True)
        assert restored(again, kept)
        assert again.is_light
        assert values(again, token, 100) == list(rows)
        assert again.small_rows() == kept
    nothing = pages(tmp_path, durable=True)
    nothing.finish()
    empty = pages(tmp_path, durable=True)
    assert restored(empty, nothing.small_rows())
    assert values(empty, 0) is None
    assert list(tmp_path.iterdir()) == []
    for count, memory in ((501, 1 << 20), (9, 64)):
        on_disk = pages(tmp_path, durable=True, memory=memory)
        on_disk.put(numbers(0, count))
        on_disk.finish()
        assert (on_disk.small_rows(), on_disk.is_light) == ("", False)
        assert restored(pages(tmp_path), "")
        on_disk.close()
    assert not restored(pages(tmp_path), "")
    failed = pages(tmp_path, durable=True)
    failed.fail(ExecutionError("a row broke"))
    assert failed.small_rows() == ""


def test_what_was_forgotten_is_not_taken_for_a_complete_result(tmp_path: Path) -> None:
    made = pages(tmp_path, memory=0, keep=False, durable=True)
    for start in (0, 10):
        made.put(numbers(start, start + 10))
    assert [values(made, token, 10) for token in (0, 1)] == [list(range(10)), list(range(10, 20))]
    made.finish()
    assert values(made, 2) is None
    assert not restored(pages(tmp_path, keep=False), "")


def test_rows_before_a_failure_come_first(tmp_path: Path) -> None:
    made = pages(tmp_path)
    made.put(numbers(0, 2))
    made.fail(ExecutionError("a row broke"))
    assert values(made, 0) == [0, 1]
    for _ in range(2):
        with pytest.raises(ExecutionError, match="a row broke"):
            made.fetch(1)


def test_wide_rows_make_small_pages(tmp_path: Path) -> None:
    made = pages(tmp_path, memory=1 << 30)
    made.put(numbers(0, 2_000_000))
    made.finish()
    sizes = [len(values(made, token, 10_000_000) or []) for token in range(3)]
    assert sizes[0] == sizes[1] == 524_288
