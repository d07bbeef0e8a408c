"""A resident worker: a task of Spark's that runs tasks of epochs until the driver closes the connection."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Protocol

from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.resident.connection import Answer, Batches, Question, connected
from tidemill.spark_internals.task_context import act_as


@dataclass(slots=True)
class Told:
    """What the steps of a task report to the driver; it travels with them."""

    report: Report = field(default_factory=dict)

    def add(self, term: Report) -> None:
        self.report.update(term)


class Program(Protocol):
    """``told``: what its steps have reported."""

    told: Told

    def run(self, given: bytes) -> list[Batches]: ...


def serve(path: str, _: Iterable[int]) -> Iterator[None]:
    """Connects to the driver and runs its tasks. A driver that does not listen any more has no need of it."""
    try:
        connection = connected(path)
    except OSError:
        return iter(())
    with suppress(OSError):
        connection.send(os.getpid())
        answer(connection)
    return iter(())


def answer(connection: Connection) -> None:
    """Runs what it is asked to, until the driver closes its end."""
    with connection, suppress(EOFError, OSError):
        while True:
            _answered(Question.receive(connection)).send(connection)


def _answered(question: Question) -> Answer:
    try:
        act_as(question.number)
        program: Program = pickle.loads(question.program)
        made = program.run(question.given)
    except Exception:
        return Answer({}, [], traceback.format_exc())
    return Answer(program.told.report, made)
