"""A JVM that has ended, however py4j tells of it."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from py4j.protocol import ERROR, Py4JError

from tidemill.errors import LostDriverError
from tidemill.spark_internals import driver_end


@dataclass
class Client:
    """Gives ``answer``, or raises it."""

    answer: str | Exception

    def send_command(self, command: str, retry: bool, binary: bool) -> str:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Gateway:
    """As far as it is watched."""

    def __init__(self, answer: str | Exception, *, with_process: bool = True) -> None:
        self.proc = subprocess.Popen(["cat"], stdin=subprocess.PIPE) if with_process else None
        self._gateway_client: Any = Client(answer)
        driver_end.watch(self)

    def ask(self) -> str:
        return str(self._gateway_client.send_command("?"))

    def kill(self) -> None:
        assert self.proc is not None
        self.proc.kill()


@pytest.fixture
def gateways() -> Iterator[list[Gateway]]:
    made: list[Gateway] = []
    yield made
    for gateway in made:
        if gateway.proc is not None:
            gateway.proc.communicate()


@pytest.mark.parametrize("answer", [ERROR, ConnectionRefusedError(111, "Connection refused")], ids=repr)
def test_calls_into_a_killed_jvm(gateways: list[Gateway], answer: str | Exception) -> None:
    gateway = Gateway(answer)
    gateways.append(gateway)
    gateway.kill()
    with pytest.raises(LostDriverError, match="has ended, killed by SIGKILL") as raised:
        gateway.ask()
    assert raised.value.code == "LOST_PROCESS"
    assert "checkpoint directory" in raised.value.hint
    assert isinstance(raised.value, Py4JError)


def test_calls_into_a_jvm_that_lives(gateways: list[Gateway]) -> None:
    gateways.append(Gateway("yes"))
    assert gateways[0].ask() == "yes"
    assert driver_end.ended(gateways[0], 0.0) is None


def test_a_jvm_that_somebody_else_started() -> None:
    gateway = Gateway(ConnectionRefusedError(111, "Connection refused"), with_process=False)
    with pytest.raises(LostDriverError, match=r"driver has ended\.\n"):
        gateway.ask()


def test_what_is_raised_is_not_logged(gateways: list[Gateway], caplog: pytest.LogCaptureFixture) -> None:
    gateways.append(Gateway("yes"))
    logging.exception("Exception while sending command.")
    logging.error("something else")
    assert caplog.messages == ["something else"]
