"""The messages between the driver and a resident worker, over a Unix socket.

The driver asks, the worker answers, one question at a time: neither writes while the other does, so messages
of any size get through.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from multiprocessing.connection import Connection

import pyarrow as pa
import pyarrow.ipc as ipc

from tidemill.runtime.spark.kernel import Report

Batches = list[pa.RecordBatch]


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
    """``report``: what the program told the driver; ``made``: its results; ``failure``: a traceback, or ''."""

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


def to_bytes(batches: Batches) -> bytes | pa.Buffer:
    """Batches of one schema, none as no bytes."""
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def of_bytes(data: bytes) -> Batches:
    return list(ipc.open_stream(data)) if data else []


def connected(path: str) -> Connection:
    """A connection to the driver, which listens at ``path``. OSError if it does not listen."""
    made = socket.socket(socket.AF_UNIX)
    try:
        made.connect(path)
    except OSError:
        made.close()
        raise
    return Connection(made.detach())
