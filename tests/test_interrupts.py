"""Ctrl-C asks work to end, and is raised when it has; a second one at once."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemill.interrupts import can_be_heard, ended_by_interrupt, no_torn_calls_shown
from tidemill.late import late

LONG = 60.0


@pytest.fixture(autouse=True)
def pythons_own() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def run(work: Callable[[], None], end: Callable[[], object]) -> None:
    with ended_by_interrupt(end):
        work()


def test_work_ends_by_itself_first() -> None:
    ended, steps = threading.Event(), list[str]()

    def work() -> None:
        interrupt()
        assert ended.wait(LONG)
        steps.append("goes on")

    with pytest.raises(KeyboardInterrupt):
        run(work, ended.set)
    assert steps == ["goes on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_the_work_fails_with_is_not_shown() -> None:
    ended = threading.Event()

    def work() -> None:
        interrupt()
        assert ended.wait(LONG)
        raise ValueError("It was cancelled.")

    with pytest.raises(KeyboardInterrupt) as raised:
        run(work, ended.set)
    assert raised.value.__suppress_context__


def test_the_second_one_is_raised_at_once() -> None:
    steps = list[str]()

    def work() -> None:
        interrupt()
        steps.append("after the first")
        interrupt()
        steps.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        run(work, lambda: None)
    assert steps == ["after the first"]


def test_failures_are_what_they_are_without_it() -> None:
    with pytest.raises(ValueError, match="its own"), ended_by_interrupt(lambda: None):
        raise ValueError("its own")


def test_whose_handler_it_is() -> None:
    assert can_be_heard()
    signal.signal(signal.SIGINT, lambda *_: None)
    assert not can_be_heard()
    heard: list[bool] = []
    thread = threading.Thread(target=lambda: heard.append(can_be_heard()))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread.start()
    thread.join()
    assert heard == [False]


def test_what_py4j_says_of_a_torn_call_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers = list(root.handlers)
    for handler in handlers:
        root.removeHandler(handler)
    try:
        with no_torn_calls_shown():
            logging.exception("KeyboardInterrupt while sending command.")
            logging.error("something else")
        assert root.handlers == []
    finally:
        root.handlers[:] = handlers
    assert capsys.readouterr().err == "ERROR:root:something else\n"


def test_an_import_is_not_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "torn_outside.py").write_text("import torn_inside\nvalue = torn_inside.value\n")
    (tmp_path / "torn_inside.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nimport torn_outside\nvalue = 1\n"
    )
    module = late("torn_outside")
    with pytest.raises(KeyboardInterrupt):
        _ = module.value
    assert module.value == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
