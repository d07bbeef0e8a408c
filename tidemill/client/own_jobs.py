"""Access to the jobs of this user's processes: each process with jobs serves requests at a Unix socket.

The sockets are in a folder that only their user can access. A client removes a socket whose process is gone.
A connection has one request and one answer, each a line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemill.errors import ConnectorError, TidemillError, ValidationError
from tidemill.files.private import own_directory
from tidemill.session.context import SessionContext

_FOLDER = "jobs"
_ASKED_SECONDS = 5.0
_LAST_SECONDS = 10.0
"""How long an ending process waits for its last answers."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job of a running process. ``place``: the path of the process's socket."""

    place: Path
    job_id: str
    name: str
    status: str
    started: str

    def cancel(self) -> None:
        _request(self.place, {"do": "cancel", "job": self.job_id}, None)

    def stop(self, directory: str, *, drain: bool) -> str:
        """Where the savepoint lies."""
        request = {"do": "stop", "job": self.job_id, "directory": directory, "drain": drain}
        return str(_request(self.place, request, None)["path"])

    def create_savepoint(self, directory: str, path: str) -> str:
        """Where the savepoint lies."""
        request = {"do": "savepoint", "job": self.job_id, "directory": directory, "path": path}
        return str(_request(self.place, request, None)["path"])


def own_jobs() -> list[OwnJob]:
    """The jobs of all processes of this user."""
    jobs: list[OwnJob] = []
    for place in sorted(Path(own_directory(_FOLDER)).glob("*.sock")):
        try:
            answer = _request(place, {"do": "list"}, _ASKED_SECONDS)
        except ConnectorError:
            continue
        jobs += (OwnJob(place, *job) for job in answer["jobs"])
    return jobs


@contextmanager
def answered_for(context: SessionContext) -> Iterator[None]:
    """Serves requests for the session's jobs within the context. Returns once the last request is answered,
    since a stopped job may be the last work of its process. If the socket cannot be opened, it warns."""
    answers = _Answers(context)
    place = Path(own_directory(_FOLDER)) / f"{os.getpid()}-{id(context):x}.sock"
    with contextlib.suppress(OSError):
        place.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(str(place))
            listening.listen()
        except OSError as e:
            context.warn(f"'tidemill jobs' will not show the jobs of this process: {e}")
        else:
            threading.Thread(
                target=_answer_all, args=(listening, answers), name="tidemill-own-jobs", daemon=True
            ).start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                place.unlink()
            answers.wait(_LAST_SECONDS)


def _answer_all(listening: socket.socket, answers: _Answers) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=answers.answer, args=(connection,), daemon=True).start()


class _Answers:
    """Answers requests, and counts those in progress."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._changed = threading.Condition()
        self._under_way = 0

    def answer(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, ValueError),
            connection,
            connection.makefile("rw", encoding="utf-8") as file,
        ):
            request = file.readline()
            with self._counted():
                try:
                    answer = _done(json.loads(request), self._context)
                except TidemillError as e:
                    answer = {"error": str(e)}
                file.write(json.dumps(answer) + "\n")
                file.flush()

    def wait(self, seconds: float) -> None:
        """Waits until no request is in progress, at most ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, seconds)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def _count(self, by: int) -> None:
        with self._changed:
            self._under_way += by
            self._changed.notify_all()


def _done(request: Json, context: SessionContext) -> Json:
    if request["do"] == "list":
        return {
            "jobs": [
                (s.job.job_id, s.job.name, s.job.status, s.started.isoformat(" ", "seconds"))
                for s in context.jobs.all()
            ]
        }
    started = context.jobs.find(request["job"])
    if started is None:
        raise ValidationError(f"There is no job '{request['job']}'.")
    if request["do"] == "cancel":
        started.job.cancel()
        return {}
    if request["do"] == "savepoint":
        return {"path": started.job.create_savepoint(request["directory"], path=request["path"])}
    return {"path": started.job.stop_with_savepoint(request["directory"], drain=request["drain"])}


def _request(place: Path, request: Json, seconds: float | None) -> Json:
    """The answer of the process at ``place``. ConnectorError if the process does not answer, or refuses."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(str(place))
            with connection.makefile("rw", encoding="utf-8") as file:
                file.write(json.dumps(request) + "\n")
                file.flush()
                line = file.readline()
            if not line:
                raise ConnectorError("The process of the job ended before it answered.")
            answer: Json = json.loads(line)
        except ConnectionRefusedError as e:
            place.unlink(missing_ok=True)
            raise ConnectorError("The process of the job has ended.") from e
        except (OSError, ValueError) as e:
            raise ConnectorError(f"The process of the job does not answer: {e}") from e
    if "error" in answer:
        raise ConnectorError(answer["error"])
    return answer
