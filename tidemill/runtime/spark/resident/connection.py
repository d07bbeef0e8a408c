"""The messages between the driver and a resident worker, over a Unix socket.

The driver asks, the worker answers, one question at a time: neither writes while the other does, so messages
of any size get through.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tidemill.runtime.spark.epoch.programs import of_bytes, to_bytes
from tidemill.runtime.spark.epoch.runner import Batches
from tidemill.runtime.spark.kernel import Report


@dataclass(frozen=True, slots=True)
class Question:
    """``program``: a pickled ``Program``; ``given``: what it gets, as bytes; ``number``: its place
    among the tasks that run with it."""

    number: int
    program: bytes
    given: bytes

    def send(self, to: Connection) -> None:
        to.send(self.number)
        to.send_bytes(self.program)
        to.send_bytes(self.given)

    @classmethod
    def receive(cls, connection: Connection) -> Question:
        return cls(connection.recv(), connection.recv_bytes(), connection.recv_bytes())


@dataclass(frozen=True, slots=True)
class Answer:
    """``report``: what the program has told; ``made``: its results; ``failure``: a traceback, or ''."""

    report: Report
    made: list[Batches]
    failure: str = ""

    def send(self, to: Connection) -> None:
        to.send((self.report, len(self.made), self.failure))
        for batches in self.made:
            to.send_bytes(to_bytes(batches))

    @classmethod
    def receive(cls, connection: Connection) -> Answer:
        report, count, failure = connection.recv()
        return cls(report, [of_bytes(connection.recv_bytes()) for _ in range(count)], failure)


def connected(path: str) -> Connection:
    """A connection to the driver, which listens at ``path``. OSError if it does not listen."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.connect(path)
    except OSError:
        made.close()
        raise
    return Connection(made.detach())
