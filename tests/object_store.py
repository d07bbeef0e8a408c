"""A local S3 server of the suite's own, and the settings that reach it; also one that fails when told to."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyarrow import fs

_SETTINGS = {
    "s3.region": "us-east-1",
    "s3.access-key": "key-of-the-test",
    "s3.secret-key": "secret-of-the-test",
}


@contextlib.contextmanager
def server() -> Iterator[Mapping[str, str]]:
    """The settings of a server on loopback; skips where moto is not installed."""
    moto = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    try:
        yield {"s3.endpoint": f"http://{host}:{port}", **_SETTINGS}
    finally:
        running.stop()


SLOW_SECONDS = 1.5
Answer = tuple[Any, list[bytes]]


@dataclass(slots=True)
class Faults:
    """``down``: every request is refused; ``lost_answers``: of so many changes to come only the answer is,
    after ``passes`` changes that are answered.
    ``slow``: so many answers to come take ``SLOW_SECONDS``; ``late``: a list is what it was when it was asked
    for the last time; ``unconditional``: a condition is overlooked."""

    down: bool = False
    lost_answers: int = 0
    passes: int = 0
    slow: int = 0
    late: bool = False
    unconditional: bool = False
    lists: dict[str, Answer] = field(default_factory=dict)

    def loses(self, method: str) -> bool:
        if self.lost_answers == 0 or method not in ("PUT", "POST", "DELETE"):
            return False
        if self.passes > 0:
            self.passes -= 1
            return False
        self.lost_answers -= 1
        return True

    def takes_long(self) -> bool:
        if self.slow == 0:
            return False
        self.slow -= 1
        return True


Start = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Failing:
    """A WSGI application in front of another."""

    application: Callable[[dict[str, Any], Start], Iterable[bytes]]
    faults: Faults

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if self.faults.unconditional:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        loses = self.faults.loses(environ["REQUEST_METHOD"])
        if not self.faults.down and not loses:
            return self._answer(environ, start)
        if not self.faults.down:
            list(self.application(environ, lambda *_: None))
        start("500 Internal Server Error", [("Content-Type", "application/xml")])
        return [b"<Error><Code>InternalError</Code><Message>Told to fail.</Message></Error>"]

    def _answer(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        answer = self._listed(environ) if "list-type" in environ["QUERY_STRING"] else self._whole(environ)
        if self.faults.takes_long():
            threading.Event().wait(SLOW_SECONDS)
        start(*answer[0])
        return answer[1]

    def _listed(self, environ: dict[str, Any]) -> Answer:
        query = environ["PATH_INFO"] + environ["QUERY_STRING"]
        now = self._whole(environ)
        before = self.faults.lists.get(query, now)
        self.faults.lists[query] = now
        return before if self.faults.late else now

    def _whole(self, environ: dict[str, Any]) -> Answer:
        begun: list[Any] = []
        body = list(self.application(environ, lambda *said: begun.append(said)))
        return begun[0], body


@contextlib.contextmanager
def faulty_server() -> Iterator[tuple[Mapping[str, str], Faults]]:
    """A server whose requests fail as ``Faults`` say."""
    moto = pytest.importorskip("moto.server")
    serving = pytest.importorskip("werkzeug.serving")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    faults = Faults()
    application = moto.DomainDispatcherApplication(moto.create_backend_app)
    running = serving.make_server("127.0.0.1", 0, _Failing(application, faults), threaded=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield {"s3.endpoint": f"http://127.0.0.1:{running.server_port}", **_SETTINGS}, faults
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def bucket(settings: Mapping[str, str], name: str) -> fs.S3FileSystem:
    """Makes a bucket; gives the file system to look into it with."""
    host = settings["s3.endpoint"].removeprefix("http://")
    system = fs.S3FileSystem(
        access_key=settings["s3.access-key"],
        secret_key=settings["s3.secret-key"],
        region=settings["s3.region"],
        endpoint_override=host,
        scheme="http",
        allow_bucket_creation=True,
    )
    system.create_dir(name)
    return system
