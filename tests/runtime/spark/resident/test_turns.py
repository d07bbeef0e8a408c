"""Who has the workers next: the one that has waited longest."""

from __future__ import annotations

import threading
import time

import pytest

from tidemill.runtime.spark.resident.turns import Turns

_PATIENCE = 60.0


def never() -> bool:
    return False


def test_turns_come_in_the_order_of_asking() -> None:
    turns, order, threads = Turns(), [], []
    assert turns.take(never)

    def wait(name: int) -> None:
        assert turns.take(never)
        order.append(name)
        turns.give_back()

    for name in range(8):
        threads.append(threading.Thread(target=wait, args=(name,)))
        threads[-1].start()
        while turns.waiting <= name:
            time.sleep(0.001)
    turns.give_back()
    for thread in threads:
        thread.join(_PATIENCE)
    assert order == list(range(8))


def test_who_does_not_want_it_any_more_lets_the_next_one_pass() -> None:
    turns, gone, left = Turns(), threading.Event(), []
    assert turns.take(never)
    first = threading.Thread(target=lambda: left.append(turns.take(gone.is_set)))
    first.start()
    while not turns.waiting:
        time.sleep(0.001)
    second = threading.Thread(target=lambda: left.append(turns.take(never)))
    second.start()
    gone.set()
    first.join(_PATIENCE)
    turns.give_back()
    second.join(_PATIENCE)
    assert left == [False, True]


def test_nobody_waits_behind_an_error() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="lost"), turns.taken():
        raise ValueError("lost")
    assert turns.take_now()


def test_what_is_taken_or_asked_for_is_not_taken_now() -> None:
    turns = Turns()
    assert turns.take_now()
    assert not turns.take_now()
    thread = threading.Thread(target=turns.take, args=(never,))
    thread.start()
    while not turns.waiting:
        time.sleep(0.001)
    turns.give_back()
    assert not turns.take_now()
    thread.join(_PATIENCE)
    assert not turns.take_now()


def test_a_few_have_it_at_a_time_or_one_alone() -> None:
    turns, alone = Turns(most=2), threading.Event()
    assert turns.take(never)
    assert turns.take(never)
    assert not turns.take_now()

    def wait() -> None:
        with turns.taken():
            alone.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not turns.waiting:
        time.sleep(0.001)
    turns.give_back()
    assert not turns.take_now(), "somebody waits"
    assert not alone.is_set(), "another one has it"
    turns.give_back()
    thread.join(_PATIENCE)
    assert alone.is_set()
    assert turns.take_now(alone=True)
    assert not turns.take_now()


def test_who_is_first_passes_those_that_wait() -> None:
    turns, order = Turns(), []
    assert turns.take(never)

    def wait(name: str, first: bool) -> None:
        assert turns.take(never, first=first)
        order.append(name)
        turns.give_back()

    threads = []
    for name, first in (("later", False), ("first", True)):
        threads.append(threading.Thread(target=wait, args=(name, first)))
        threads[-1].start()
        while turns.waiting < len(threads):
            time.sleep(0.001)
    turns.give_back()
    for thread in threads:
        thread.join(_PATIENCE)
    assert order == ["first", "later"]
