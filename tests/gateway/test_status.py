"""Which status follows which, and that two who want to end an operation do not both."""

from __future__ import annotations

import threading
from itertools import product

import pytest

from tidemill.gateway.api import OperationStatus as S
from tidemill.gateway.api import StatusError
from tidemill.gateway.service.status import NEXT, Status

WAYS: dict[S, list[S]] = {
    S.INITIALIZED: [],
    S.PENDING: [S.PENDING],
    S.RUNNING: [S.PENDING, S.RUNNING],
    S.FINISHED: [S.PENDING, S.RUNNING, S.FINISHED],
    S.CANCELED: [S.CANCELED],
    S.CLOSED: [S.CLOSED],
    S.ERROR: [S.ERROR],
    S.TIMEDOUT: [S.TIMEDOUT],
}


def test_every_step_is_in_the_table_or_refused() -> None:
    for start, to in product(S, S):
        status = Status("h")
        for step in WAYS[start]:
            status.move(step)
        if to in NEXT[start]:
            status.move(to)
            assert status.value is to
            continue
        with pytest.raises(StatusError, match=f"Failed to convert .* from {start.value} to {to.value} for h"):
            status.move(to)
        assert status.value is start


def test_no_way_leads_out_of_an_end_but_to_closed() -> None:
    assert {s: set(NEXT[s]) for s in S if s.is_terminal} == {
        S.FINISHED: {S.CLOSED},
        S.CANCELED: {S.CLOSED},
        S.ERROR: {S.CLOSED},
        S.TIMEDOUT: {S.CLOSED},
        S.CLOSED: set(),
    }


def test_one_of_many_ends_it() -> None:
    heard: list[S] = []
    status = Status("h", heard.append)
    status.move(S.PENDING)
    status.move(S.RUNNING)
    won: list[S] = []
    start = threading.Barrier(4)

    def end(to: S) -> None:
        start.wait()
        if status.try_move(to):
            won.append(to)

    threads = [
        threading.Thread(target=end, args=(to,)) for to in (S.FINISHED, S.CANCELED, S.ERROR, S.TIMEDOUT)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert heard == [S.PENDING, S.RUNNING, *won]
    assert status.wait_ended(0)


def test_who_listens_hears_of_the_end_once_it_is_seen_and_nobody_waits_for_who_writes_it_down() -> None:
    told: list[S] = []
    begun, go_on = threading.Event(), threading.Event()

    def write(to: S) -> None:
        if to is S.FINISHED:
            begun.set()
            assert go_on.wait(60)

    def listen() -> None:
        told.append(status.value)

    def never() -> None:
        told.append(S.ERROR)

    status = Status("h", write)
    for step in (S.PENDING, S.RUNNING):
        status.move(step)
    ending = threading.Thread(target=status.move, args=(S.FINISHED,))
    ending.start()
    assert begun.wait(60)
    assert status.value is S.RUNNING
    assert status.listen(listen)
    assert status.listen(never)
    status.listen_no_more(never)
    canceled: list[bool] = []
    late = threading.Thread(target=lambda: canceled.append(status.try_move(S.CANCELED)))
    late.start()
    go_on.set()
    ending.join(60)
    late.join(60)
    assert (told, canceled) == ([S.FINISHED], [False])
    assert not status.listen(never)


def test_a_step_that_cannot_be_written_down_is_none() -> None:
    def write(to: S) -> None:
        if to is S.FINISHED:
            raise ValueError("no")

    status = Status("h", write)
    for step in (S.PENDING, S.RUNNING):
        status.move(step)
    with pytest.raises(ValueError, match="no"):
        status.move(S.FINISHED)
    status.move(S.ERROR)
    assert status.value is S.ERROR
