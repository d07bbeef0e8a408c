"""Random requests, made of what the endpoint says of itself: each is answered as the protocol says.

The endpoint's description names paths, parameters and fields; here they get good values, values of another
type, and bytes that are none. No request makes the gateway fail in a way that it does not mean to.
``--requests=N --seed=S`` sends more, and others.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httptools
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.gateway.asking import options
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.console_api import API, HANDLERS
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.endpoints.rest.openapi import openapi
from tidemill.gateway.start import GatewayProcess

SESSION, OPERATION = "a-session-there-is", "an-operation-there-is"
ANSWERS = {200, 400, 403, 404, 408, 413, 500}
PROTOCOL = ("<Exception on server side:", "java.lang.", "org.apache.")
"""How an error begins that the protocol has for what is asked."""
SAID = st.text(max_size=30) | st.sampled_from(
    ["SELECT 1", "SHOW JOBS", "SET 'a'='\ud800'", "SELECT '\ud800'", "USE `\0`", "'", "\0", "a\r\nb: c"]
)
KEYS = SAID | st.sampled_from(
    ["execution.runtime-mode", "table.local-time-zone", "parallelism.default", "tidemill.x", "python.files"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SAID,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SAID, inner, max_size=3),
    max_leaves=6,
)
HEADERS = {
    "Accept": ["application/json", "application/vnd.apache.arrow.stream", "*/*", "\xff"],
    "Content-Type": ["application/json", "text/plain", "\xff"],
    "Authorization": ["Basic \xff", "Basic !", "Bearer x", "Digest"],
    "Origin": ["http://[", "null", "http://127.0.0.1"],
    "Host": ["[", "127.0.0.1", "localhost:1:2", ""],
    "Last-Event-Id": ["x", "-1", "9" * 40],
    "Expect": ["100-continue", "x"],
}


@dataclass(frozen=True)
class Target:
    """``queries`` and ``fields``: names, with what the description says of them."""

    method: str
    path: str
    queries: tuple[str, ...] = ()
    fields: dict[str, dict[str, Any]] = field(default_factory=dict, hash=False)


def targets() -> list[Target]:
    found = [
        Target(
            method.upper(),
            path,
            tuple(p["name"] for p in described["parameters"] if p["in"] == "query"),
            _fields(described),
        )
        for version in range(1, 5)
        for path, methods in openapi(version)["paths"].items()
        for method, described in methods.items()
    ]
    found += [Target(method, f"{API}{path}", ("last", "seconds")) for method, path in HANDLERS]
    return found + [
        Target("GET", path) for path in ("/metrics", "/openapi.json", "/v2/openapi.json", "/nosuch")
    ]


def _fields(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if "requestBody" not in described:
        return {}
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    found: dict[str, dict[str, Any]] = schema["properties"]
    return found


TARGETS = targets()


@dataclass(slots=True)
class Wire:
    """An endpoint with a session and a result, which random requests may close."""

    endpoint: RestEndpoint

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status of the answer, and its body."""
        port = int(self.endpoint.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(request)
            answer = _Answer()
            answer.parser = httptools.HttpResponseParser(answer)
            while not answer.ended and (data := connection.recv(1 << 16)):
                answer.parser.feed_data(data)
        return answer.parser.get_status_code(), b"".join(answer.parts)


@dataclass(slots=True)
class _Answer:
    """The last one: before it a server may say that the body shall come (100)."""

    parser: Any = None
    parts: list[bytes] = field(default_factory=list)
    ended: bool = False

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        self.ended = self.parser.get_status_code() >= 200


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    house = GatewayProcess(options(tmp_path_factory.mktemp("gateway")))
    house.start()
    endpoint = RestEndpoint(house.gateway, Configuration({"sql-gateway.endpoint.rest.port": "0"}))
    endpoint.start()
    yield Wire(endpoint)
    endpoint.stop()
    house.close()


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """With names for the handles of a session and an operation that there are."""
    target = draw(st.sampled_from(TARGETS))
    values = {
        "session_handle": SESSION,
        "operation_handle": OPERATION,
        "token": "0",
        "identifier": "a.b.c",
    }
    path = target.path
    for name in [part.strip("{}") for part in path.split("/") if part.startswith("{")]:
        odd = st.text(max_size=8).map(lambda t: quote(t.encode("utf-8", "replace"), safe=""))
        value = draw(st.just(values.get(name, "x")) | odd | st.sampled_from(["%ff", "%00", "..", "1" * 30]))
        path = path.replace("{" + name + "}", value)
    query = draw(
        st.dictionaries(st.sampled_from([*target.queries, "rowFormat", "row_format"]), SAID, max_size=2)
    )
    pairs = "&".join(f"{key}={quote(value.encode('utf-8', 'replace'))}" for key, value in query.items())
    headers = {"Host": "127.0.0.1", **draw(st.fixed_dictionaries({}, optional=_choices()))}
    body = draw(bodies(target.fields))
    if body:
        headers["Content-Length"] = str(len(body))
    method = draw(st.sampled_from([target.method] * 5 + ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]))
    lines = [f"{method} {path}?{pairs} HTTP/1.1", *(f"{key}: {value}" for key, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body


def _choices() -> dict[str, st.SearchStrategy[str]]:
    return {name: st.sampled_from(values) for name, values in HEADERS.items()}


@st.composite
def bodies(draw: st.DrawFn, fields: dict[str, dict[str, Any]]) -> bytes:
    kind = draw(st.sampled_from(["fields", "fields", "fields", "json", "bytes", "none"]))
    if kind == "none":
        return b""
    if kind == "bytes":
        return draw(st.binary(max_size=40) | st.just(b"[" * 5_000))
    if kind == "json":
        return json.dumps(draw(JSON)).encode()
    named = {name: _value(described) | JSON for name, described in fields.items()}
    return json.dumps(draw(st.fixed_dictionaries({}, optional=named))).encode()


def _value(described: dict[str, Any]) -> st.SearchStrategy[Any]:
    if described["type"] == "integer":
        return st.integers()
    if described["type"] == "object":
        return st.dictionaries(KEYS, SAID | st.integers() | st.booleans(), max_size=3)
    return SAID


def test_names_of_operations_are_one_each() -> None:
    for version in range(1, 5):
        methods = [m for path in openapi(version)["paths"].values() for m in path.values()]
        names = [method["operationId"] for method in methods]
        assert sorted(names) == sorted(set(names))


def test_each_is_answered_as_the_protocol_says(
    wire: Wire, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    count, first = request.config.getoption("--requests"), request.config.getoption("--seed")

    @seed(first)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(requests())
    def run(asked: bytes) -> None:
        session, operation = _opened(wire)
        sent = asked.replace(SESSION.encode(), session.encode()).replace(
            OPERATION.encode(), operation.encode()
        )
        status, answer = wire.ask(sent)
        _check(sent, status, answer)
        if b"operationHandle" in answer:
            _read(wire, _place(sent, answer))
        assert not [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR], sent

    run()


def _opened(wire: Wire) -> tuple[str, str]:
    """A session, and an operation of it that has a result."""
    session = json.loads(wire.ask(_request("POST", "/v1/sessions", "{}"))[1])["sessionHandle"]
    asked = _request("POST", f"/v1/sessions/{session}/statements", '{"statement": "SHOW CATALOGS"}')
    return session, json.loads(wire.ask(asked)[1])["operationHandle"]


def _read(wire: Wire, place: str) -> None:
    """What a random statement gives: pages, or an error."""
    status, answer = 200, b"NOT_READY"
    while status == 200 and b"NOT_READY" in answer:
        asked = _request("GET", f"{place}/result/0")
        status, answer = wire.ask(asked)
        _check(asked, status, answer)
    wire.ask(_request("DELETE", f"{place}/close"))


def _place(sent: bytes, answer: bytes) -> str:
    """The path of the operation that a request has begun."""
    session = sent.partition(b"/sessions/")[2].partition(b"/")[0].decode()
    return f"/v4/sessions/{session}/operations/{json.loads(answer)['operationHandle']}"


def _request(method: str, path: str, body: str = "") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
    return f"{head}\r\nConnection: close\r\n\r\n{body}".encode()


def _check(asked: bytes, status: int, answer: bytes) -> None:
    assert status in ANSWERS, (asked, status, answer)
    if status in (400, 404) and not answer.startswith(b"{"):
        return  # it was no request of HTTP's, or for a file of the console's
    if status >= 400:
        errors = json.loads(answer)["errors"]
        assert errors, asked
        assert all(isinstance(text, str) for text in errors)
    if status == 500 and len(errors) > 1:
        assert errors[1].startswith(PROTOCOL), (asked, errors)
