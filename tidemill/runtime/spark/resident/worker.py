"""A resident worker: a task of Spark's that runs tasks of epochs until the driver closes the connection."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection

from tidemill.runtime.spark.epoch.programs import Program
from tidemill.runtime.spark.resident.connection import Answer, Question, connected
from tidemill.spark_internals.task_context import act_as


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
