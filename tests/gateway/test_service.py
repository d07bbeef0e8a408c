"""Sessions and operations, with statements that do what the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.fakes import Gate, Stopwatch, gateway
from tidemill.errors import ExecutionError, InternalError, TidemillError
from tidemill.gateway.api import (
    LimitError,
    OperationStatus,
    ResultType,
    StatusError,
    UnknownOperationError,
    UnknownSessionError,
)
from tidemill.gateway.service.operation import Control
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.workers import Lane, Workers

LONG = 60.0


def ended(made: Gateway, session: str, operation: str) -> OperationStatus:
    return made.wait(session, operation, LONG).status


def failing(error: Exception) -> Callable[[Control], None]:
    def run(_: Control) -> None:
        raise error

    return run


def test_statements_of_a_session_wait_for_each_other_and_not_for_other_sessions(tmp_path: Path) -> None:
    gate = Gate()
    made, sessions = gateway(tmp_path, {"wait": gate})
    first, second = made.open_session({}), made.open_session({})
    waiting = [made.execute(first, text) for text in ("wait", "a", "b", "c")]
    assert gate.running.wait(LONG)
    assert ended(made, second, made.execute(second, "other")) is OperationStatus.FINISHED
    assert [made.operation_info(first, o).status.value for o in waiting] == ["RUNNING", *["PENDING"] * 3]
    assert made.fetch(first, waiting[1], 0).type is ResultType.NOT_READY
    gate.let.set()
    assert [ended(made, first, o) for o in waiting] == [OperationStatus.FINISHED] * 4
    assert sessions[0].ran == ["wait", "a", "b", "c"]


def test_what_is_canceled_is_stopped_and_gives_nothing(tmp_path: Path) -> None:
    gate = Gate()
    made, sessions = gateway(tmp_path, {"wait": gate})
    session = made.open_session({})
    running, waiting, last = (made.execute(session, t) for t in ("wait", "never", "last"))
    assert gate.running.wait(LONG)
    assert made.cancel(session, waiting) is OperationStatus.CANCELED
    assert made.cancel(session, running) is OperationStatus.CANCELED
    assert ended(made, session, last) is OperationStatus.FINISHED
    assert gate.stopped
    assert sessions[0].ran == ["last"]
    assert made.operation_info(session, running).error is None
    with pytest.raises(StatusError, match="canceled"):
        made.fetch(session, running, 0)
    assert [made.operation(session, o).is_light for o in (running, last)] == [False, True]
    for operation, status in ((running, "CANCELED"), (last, "FINISHED")):
        with pytest.raises(StatusError, match=f"from {status} to CANCELED"):
            made.cancel(session, operation)


def test_a_statement_times_out(tmp_path: Path) -> None:
    gate = Gate()
    made, _ = gateway(tmp_path, {"wait": gate})
    session = made.open_session({})
    assert ended(made, session, made.execute(session, "wait", timeout=0.01)) is OperationStatus.TIMEDOUT
    assert ended(made, session, made.execute(session, "next", timeout=LONG)) is OperationStatus.FINISHED
    assert not gate.running.is_set() or gate.stopped


def test_a_failure_shows_in_the_status_and_where_the_result_is_read(tmp_path: Path) -> None:
    made, _ = gateway(
        tmp_path, {"bad": failing(ExecutionError("a row broke")), "bug": failing(KeyError("k"))}
    )
    session = made.open_session({})
    bad, bug = made.execute(session, "bad"), made.execute(session, "bug")
    assert ended(made, session, bad) is OperationStatus.ERROR
    with pytest.raises(ExecutionError, match="a row broke"):
        made.fetch(session, bad, 0)
    assert isinstance(made.wait(session, bug, LONG).error, InternalError)
    assert ended(made, session, made.execute(session, "fine")) is OperationStatus.FINISHED


def test_closing_frees_all_and_is_final(tmp_path: Path) -> None:
    gate = Gate()
    made, _ = gateway(tmp_path, {"wait": gate})
    session, other = made.open_session({}), made.open_session({})
    done = made.execute(session, "done")
    ended(made, session, done)
    made.close_operation(session, done)
    made.close_operation(session, done)
    with pytest.raises(UnknownOperationError):
        made.operation_info(session, done)
    running = made.execute(session, "wait")
    assert gate.running.wait(LONG)
    with pytest.raises(UnknownOperationError):
        made.operation_info(other, running)
    made.close_session(session)
    assert gate.stopped
    calls: list[Callable[[], object]] = [
        lambda: made.close_session(session),
        lambda: made.execute(session, "x"),
        lambda: made.fetch(session, running, 0),
        lambda: made.heartbeat(session),
        lambda: made.session_config(session),
        lambda: made.configure_session(session, "x"),
        lambda: made.complete(session, "x", 1),
    ]
    for call in calls:
        with pytest.raises(UnknownSessionError, match=f"Session '{session}' does not exist"):
            call()


def test_nobody_gets_at_another_users_session(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path)
    session = made.open_session({"k": "v"}, user="ann", name="mine")
    operation = made.execute(session, "x", user="ann")
    calls: list[Callable[[], object]] = [
        lambda: made.session_config(session, user="bob"),
        lambda: made.fetch(session, operation, 0, user="bob"),
        lambda: made.cancel(session, operation, user="bob"),
        lambda: made.close_session(session, user="bob"),
    ]
    for call in calls:
        with pytest.raises(UnknownSessionError):
            call()
    assert made.session_config(session, user="ann") == {"k": "v"}
    assert made.list_sessions(user="bob") == []
    (info,) = made.list_sessions(user="ann")
    assert (info.name, [o.handle for o in info.operations]) == ("mine", [operation])


def test_idle_sessions_end_and_busy_ones_do_not(tmp_path: Path) -> None:
    gate, clock = Gate(), Stopwatch()
    made, _ = gateway(tmp_path, {"wait": gate}, sql_gateway__session__idle_timeout="10 s")
    made.sessions.clock = clock
    idle, kept, busy = (made.open_session({}) for _ in range(3))
    running = made.execute(busy, "wait")
    assert gate.running.wait(LONG)
    clock.now = 9.0
    made.heartbeat(kept)
    clock.now = 12.0
    made.sessions.close_idle()
    assert {s.handle for s in made.list_sessions(user=None)} == {kept, busy}
    gate.let.set()
    assert ended(made, busy, running) is OperationStatus.FINISHED
    clock.now = 30.0
    made.sessions.close_idle()
    assert made.list_sessions(user=None) == []
    with pytest.raises(UnknownSessionError):
        made.heartbeat(idle)


def test_there_are_as_many_sessions_as_there_may_be(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path, sql_gateway__session__max_num="2")
    first = made.open_session({})
    made.open_session({})
    with pytest.raises(LimitError, match="max count: 2"):
        made.open_session({})
    made.close_session(first)
    made.open_session({})


def test_configuring_raises_what_went_wrong_and_leaves_no_operation(tmp_path: Path) -> None:
    made, sessions = gateway(tmp_path, {"bad": failing(TidemillError("no"))})
    session = made.open_session({})
    made.configure_session(session, "SET")
    with pytest.raises(TidemillError, match="no"):
        made.configure_session(session, "bad")
    assert sessions[0].ran == ["SET"]
    assert made.list_sessions()[0].operations == ()


def test_a_reader_without_tokens(tmp_path: Path) -> None:
    made, _ = gateway(tmp_path)
    session = made.open_session({})
    operation = made.execute(session, "x")
    ended(made, session, operation)
    read = [made.fetch_next(session, operation, most=2, first=n == 2).rows for n in range(5)]
    assert [[] if r is None else r.column(0).to_pylist() for r in read] == [[0, 1], [2], [0, 1], [2], []]


def test_who_looks_something_up_does_not_wait_until_queries_are_planned(tmp_path: Path) -> None:
    gate, ran = Gate(), list[str]()
    texts = ("SELECT 1", "SELECT 2", "show tables", "DESCRIBE t", "SET\n'a' = 'b'", "SELECT 3")
    noting = {text: partial(lambda text, _: ran.append(text), text) for text in texts}
    made, _ = gateway(tmp_path, {"wait": gate, **noting}, sql_gateway__worker__threads__max="1")
    first = made.open_session({})
    made.execute(first, "wait")
    assert gate.running.wait(LONG)
    sessions = [made.open_session({}) for _ in texts]
    operations = [made.execute(*given) for given in zip(sessions, texts, strict=True)]
    made.execute(first, "SHOW VIEWS")  # its session has another statement under way
    gate.let.set()
    for given in zip(sessions, operations, strict=True):
        assert ended(made, *given) is OperationStatus.FINISHED
    assert ran == [*texts[2:5], *texts[:2], texts[5]]


def test_brief_tasks_do_not_keep_others_from_their_turn() -> None:
    workers = Workers(most=1)
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def wait() -> None:
        begun.set()
        go_on.wait(LONG)

    workers.submit(wait)
    assert begun.wait(LONG)
    for _ in range(2):
        workers.submit(lambda: order.append("other"))
    for _ in range(20):
        workers.submit(lambda: order.append("brief"), brief=True)
    workers.submit(done.set)
    go_on.set()
    assert done.wait(LONG)
    assert [n for n, what in enumerate(order) if what == "other"] == [8, 17]
    workers.close()


def test_lanes_keep_their_order_and_errors_end_no_worker() -> None:
    workers = Workers(most=3)
    lanes = [Lane(workers) for _ in range(5)]
    order: list[tuple[int, int]] = []
    together = threading.Barrier(3)
    done, meet_alone = threading.Semaphore(0), threading.Semaphore(0)

    def meet() -> None:
        together.wait(LONG)
        done.release()

    def note(lane: int, number: int) -> None:
        order.append((lane, number))
        done.release()

    for n in range(3):
        lanes[n].submit(meet)
    for _ in range(3):
        assert done.acquire(timeout=LONG)
    for number in range(20):
        for n, lane in enumerate(lanes):
            lane.submit(partial(note, n, number))
    for _ in range(100):
        assert done.acquire(timeout=LONG)
    assert [[number for lane, number in order if lane == n] for n in range(5)] == [list(range(20))] * 5
    lanes[0].submit(partial(failing(ValueError("a bug")), Control("h")))
    lanes[0].submit(meet_alone.release)
    assert meet_alone.acquire(timeout=LONG)
    workers.close()
