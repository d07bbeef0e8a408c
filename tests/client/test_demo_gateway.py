"""The end of the demo, at a terminal whose input ends and where there is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tidemill.client.demo_gateway import wait_for_enter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_end_of_input_ends_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    closed = io.StringIO()
    closed.close()
    for given, asked in ((Terminal(""), True), (Terminal("\n"), True), (closed, False), (None, False)):
        monkeypatch.setattr("sys.stdin", given)
        wait_for_enter(Console(file=shown))
        assert ("Enter" in shown.getvalue()) == asked
        shown.truncate(0)
