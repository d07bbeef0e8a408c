"""The REST endpoint over a real socket, with statements that run no SQL: routes, errors, bad input."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.gateway.fakes import Gate, gateway
from tidemill.config.option import Configuration
from tidemill.errors import Position, SetupError, SqlSyntaxError
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.endpoints.rest.routes import ROUTES
from tidemill.gateway.service.operation import Control
from tidemill.gateway.service.service import Gateway
from tidemill.runtime.progress import EpochProgress

NOBODY = "00000000-0000-0000-0000-000000000000"
GATE = Gate()


def _broken(_: Control) -> None:
    raise SqlSyntaxError(
        'Encountered "<EOF>" at line 1, column 9.', position=Position(1, 9), expected=("FROM", "<IDENTIFIER>")
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RestEndpoint, Gateway]]:
    made, _ = gateway(tmp_path_factory.mktemp("gateway"), {"SELECT": _broken, "wait": GATE})
    keys = {"sql-gateway.endpoint.rest.port": "0", "rest.server.max-content-length": "10 kb"}
    endpoint = RestEndpoint(made, Configuration(keys))
    endpoint.start()
    yield endpoint, made
    endpoint.stop()
    made.close()


@pytest.fixture
def ask(served: tuple[RestEndpoint, Gateway]) -> Ask:
    return Ask(served[0])


class Ask:
    def __init__(self, endpoint: RestEndpoint) -> None:
        self.port = int(endpoint.address.rpartition(":")[2])

    def raw(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def __call__(self, method: str, path: str, **fields: Any) -> tuple[int, Any]:
        return self.raw(method, path, json.dumps(fields).encode())

    def session(self) -> str:
        return str(
            self("POST", "/v1/sessions", sessionName="s", properties={"a": 1, "b": True})[1]["sessionHandle"]
        )

    def submit(self, session: str, statement: str) -> str:
        answer = self("POST", f"/v4/sessions/{session}/statements", statement=statement)[1]
        return f"/sessions/{session}/operations/{answer['operationHandle']}"


def test_a_request_in_snake_case_is_answered_in_it_too(ask: Ask) -> None:
    """As the protocol's proposal spelt it; Flink's names are there all the same."""
    opened = ask("POST", "/v1/sessions", session_name="s", properties={})[1]
    assert opened == dict.fromkeys(("sessionHandle", "session_handle"), opened["sessionHandle"])
    place = f"/v2/sessions/{opened['session_handle']}"
    assert ask("POST", place) == (200, {})
    answer = ask("POST", f"{place}/statements", statement="x", execution_timeout=60_000)[1]
    assert answer == dict.fromkeys(("operationHandle", "operation_handle"), answer["operationHandle"])
    page = ask("GET", f"{place}/operations/{answer['operation_handle']}/result/0?row_format=PLAIN_TEXT")[1]
    while page["result_type"] == "NOT_READY":
        page = ask("GET", page["next_result_uri"])[1]
    assert (page["result_kind"], page["is_query_result"]) == ("SUCCESS_WITH_CONTENT", True)
    assert page["results"]["data"][0]["fields"] == ["0"]
    assert page["results"]["row_format"] == "PLAIN_TEXT"
    assert page["results"]["columns"][0]["logical_type"] == {"type": "BIGINT", "nullable": True}
    assert page["next_result_uri"].endswith("/result/1?row_format=PLAIN_TEXT")
    assert {"resultType", "resultKind", "nextResultUri"} < set(page)
    assert ask("GET", page["next_result_uri"])[1]["result_type"] == "EOS"
    status, answer = ask("POST", f"{place}/statements", statement="x", execution_timeout="long")
    assert (status, "'executionTimeout' is no whole number" in answer["errors"][0]) == (400, True)


def test_a_result_page_by_page(ask: Ask) -> None:
    session = ask.session()
    assert ask("GET", f"/v2/sessions/{session}") == (200, {"properties": {"a": "1", "b": "true"}})
    operation = ask.submit(session, "x")
    page = ask("GET", f"/v3{operation}/result/0?rowFormat=PLAIN_TEXT")[1]
    while page["resultType"] == "NOT_READY":
        assert set(page) == {"resultType", "nextResultUri"}
        page = ask("GET", page["nextResultUri"])[1]
    assert page == {
        "resultType": "PAYLOAD",
        "isQueryResult": True,
        "resultKind": "SUCCESS_WITH_CONTENT",
        "results": {
            "columns": [{"name": "n", "logicalType": {"type": "BIGINT", "nullable": True}, "comment": None}],
            "rowFormat": "PLAIN_TEXT",
            "data": [{"kind": "INSERT", "fields": [str(n)]} for n in range(3)],
        },
        "nextResultUri": f"/v3{operation}/result/1?rowFormat=PLAIN_TEXT",
    }
    again = ask("GET", f"/v1{operation}/result/0?rowFormat=XML")[1]
    assert again["results"]["data"] == [{"kind": "INSERT", "fields": [n]} for n in range(3)]
    assert again["nextResultUri"] == f"/v1{operation}/result/1"
    end = ask("GET", f"{operation}/result/1")[1]
    assert (end["resultType"], end["results"]["data"], "nextResultUri" in end) == ("EOS", [], False)
    assert ask("GET", f"/v4{operation}/status") == (200, {"status": "FINISHED"})
    status, answer = ask("POST", f"/v4{operation}/cancel")
    assert status == 500
    assert "from FINISHED to CANCELED" in answer["errors"][0]
    for _ in range(2):
        assert ask("DELETE", f"/v4{operation}/close") == (200, {"status": "CLOSED"})
    status, answer = ask("GET", f"/v4{operation}/result/0")
    assert (status, answer["errors"][0]) == (500, "Internal server error.")
    assert "Can not find the submitted operation" in answer["errors"][1]


def test_a_statement_that_runs_and_the_routes_of_the_proposal(ask: Ask) -> None:
    session = ask.session()
    operation = ask.submit(session, "wait")
    assert GATE.running.wait(60)
    waiting = ask.submit(session, "after")
    for path in (operation, waiting):
        assert ask("GET", f"/v1{path}/status")[1] == {"status": "RUNNING"}
        page = ask("GET", f"/v1{path}/result/0")[1]
        assert page == {"resultType": "NOT_READY", "nextResultUri": f"/v1{path}/result/0"}
    assert ask("PUT", f"/v1{operation}/cancel") == (200, {"status": "CANCELED"})
    assert ask("DELETE", f"/v1{operation}") == (200, {"status": "CLOSED"})
    assert ask("POST", f"/v1/sessions/{session}/configure_session", statement="SET") == (200, {})
    body = {"statement": "SELECT", "position": 3}
    assert ask("GET", f"/v1/sessions/{session}/complete_statement", **body) == (200, {"candidates": ["SEL"]})


def test_errors_of_statements_carry_flinks_names(ask: Ask) -> None:
    session = ask.session()
    operation = ask.submit(session, "SELECT")
    status, answer = ask("GET", f"/v4{operation}/result/0")
    while status == 200 and answer["resultType"] == "NOT_READY":
        status, answer = ask("GET", f"/v4{operation}/result/0")
    assert status == 500
    first, text = answer["errors"]
    assert first == "Internal server error."
    assert text.startswith(
        "<Exception on server side:\norg.apache.flink.table.gateway.api.utils.SqlGatewayException"
    )
    assert "Caused by: org.apache.flink.table.api.SqlParserException: SQL parse failed. Encountered" in text
    assert 'Caused by: org.apache.flink.sql.parser.impl.ParseException: Encountered "<EOF>"' in text
    expected = '\nWas expecting one of:\n    "FROM" ...\n    <IDENTIFIER> ...'
    assert text.endswith(f"column 9.{expected}\n\nEnd of exception on server side>")
    assert ask("GET", f"/v4{operation}/status")[1] == {"status": "ERROR"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "/nosuch", b"", 404, "Not found: /nosuch"),
        ("GET", "/v5/info", b"", 404, "Not found: /v5/info"),
        ("PUT", "/v1/sessions", b"", 404, "Not found: /v1/sessions"),
        ("POST", "/v1/sessions/{s}/configure-session", b"{}", 404, "Not found"),
        ("POST", "/v1/sessions", b"{bad", 400, "did not match"),
        ("POST", "/v1/sessions", b"[1]", 400, "no object"),
        ("POST", "/v1/sessions", b"[" * 9_000, 400, "did not match"),
        ("POST", "/v1/sessions", b'\xff{"a"', 400, "did not match"),
        ("POST", "/v1/sessions", b'{"properties": {"a": [1]}}', 400, "no map of texts"),
        ("POST", "/v1/sessions/{s}/statements", b'{"statement": 7}', 400, "no text"),
        ("POST", "/v1/sessions/{s}/statements", b'{"executionTimeout": "1"}', 400, "whole number"),
        ("POST", "/v1/sessions/{s}/statements", b"x" * 10_241, 413, "longer than 10240 bytes"),
        ("GET", "/v1/sessions/notauuid", b"", 400, "Cannot resolve path parameter (session_handle)"),
        ("GET", "/v1/sessions/{s}/operations/x/status", b"", 400, "path parameter (operation_handle)"),
        ("GET", f"/v1/sessions/{{s}}/operations/{NOBODY}/result/-1", b"", 400, "path parameter (token)"),
        ("GET", f"/v1/sessions/{{s}}/operations/{NOBODY}/result/{'9' * 50}", b"", 400, "parameter (token)"),
        ("GET", f"/v2/sessions/{{s}}/operations/{NOBODY}/result/0?rowFormat=XML", b"", 400, "(rowFormat)"),
        ("GET", f"/v1/sessions/{{s}}/operations/{NOBODY}/result/0", b"", 500, "Internal server error."),
        ("GET", f"/v1/sessions/{NOBODY}", b"", 500, "does not exist"),
        ("DELETE", f"/v1/sessions/{NOBODY}", b"", 500, "does not exist"),
        ("POST", f"/v1/sessions/{NOBODY}/statements", b'{"statement": "x"}', 500, "Internal server error."),
        ("GET", "/v2/sessions/{s}/complete-statement", b"", 400, "no body"),
    ],
)  # fmt: skip
def test_bad_requests(ask: Ask, method: str, path: str, body: bytes, status: int, said: str) -> None:
    got, answer = ask.raw(method, path.replace("{s}", ask.session()), body)
    assert got == status
    assert said in answer["errors"][0]


def _codes(ask: Ask, route: str) -> Counter[str]:
    """How often requests of a route were answered, by the answers' codes."""
    found = ask("GET", "/metrics.json")[1].get("tidemill_requests_total", ())
    return Counter({r["code"]: r["value"] for r in found if r["route"] == route})


def test_a_client_that_goes_in_the_middle_disturbs_nobody(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    session = ask.session()
    before = _codes(ask, "open_session")
    for text in (
        b"GET /v1/in",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"\x16\x03\x01\x02",
    ):
        with socket.create_connection(("127.0.0.1", ask.port)) as gone:
            gone.sendall(text)
    assert ask("GET", "/v1/info") == (200, {"productName": "Apache Flink", "version": "2.3.0"})
    while (counted := _codes(ask, "open_session")) == before:
        continue
    assert counted - before == Counter({"400": 1})
    assert ask("DELETE", f"/v1/sessions/{session}") == (200, {"status": "CLOSED"})
    assert [r for r in caplog.records if r.exc_info] == []


def test_an_answer_is_sent_at_once(served: tuple[RestEndpoint, Gateway], ask: Ask) -> None:
    """What is accepted has what the listening socket has: the body does not wait for who got the headers."""
    assert served[0]._server is not None
    listening = served[0]._server.listening
    assert listening is not None
    assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_port_is_taken(served: tuple[RestEndpoint, Gateway], ask: Ask) -> None:
    second = RestEndpoint(served[1], Configuration({"sql-gateway.endpoint.rest.port": str(ask.port)}))
    with pytest.raises(SetupError, match=f"cannot listen on 127.0.0.1:{ask.port}: Address already in use"):
        second.start()


def test_the_description_has_every_route(ask: Ask) -> None:
    for version in range(1, 5):
        described = ask("GET", f"/v{version}/openapi.json")[1]["paths"]
        routes = [r for r in ROUTES if r.versions[0] <= version <= r.versions[1]]
        assert sum(map(len, described.values())) == len(routes)
        for route in routes:
            assert described[f"/v{version}{route.path}"][route.method.lower()]["summary"]
        (result,) = (found for path, found in described.items() if path.endswith("/result/{token}"))
        assert "application/vnd.apache.arrow.stream" in result["get"]["responses"]["200"]["content"]


def test_halves_of_surrogate_pairs_and_times_without_sense(ask: Ask) -> None:
    path = f"/v4/sessions/{ask.session()}/statements"
    for timeout in (-1, 10**18):
        options = {"k\udfff": "\ud800"}
        given = {"statement": "SELECT '\ud800'", "executionConfig": options, "executionTimeout": timeout}
        assert ask("POST", path, **given)[0] == 200
    assert ask("POST", "/v4/sessions", sessionName="\ud800")[0] == 200


def test_metrics(served: tuple[RestEndpoint, Gateway], ask: Ask) -> None:
    session = ask.session()
    served[1].wait(session, ask.submit(session, "x").rpartition("/")[2], 60)
    served[1].metrics.jobs.epoch(
        EpochProgress(
            epoch=1, rows_in=5, rows_out=3, seconds=0.5, state_rows=2, state_bytes=9, job_id="j", late=1
        )
    )
    found = ask("GET", "/metrics.json")[1]
    assert found["tidemill_sessions"] >= 1
    by_status = {o["status"]: o["value"] for o in found["tidemill_operations_total"]}
    assert by_status["FINISHED"] >= 1
    assert found["tidemill_job_rows_in_total"] == [{"job": "j", "value": 5}]
    counted = [r for r in found["tidemill_requests_total"] if r["route"] == "execute_statement"]
    assert "200" in {r["code"] for r in counted}
    connection = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    assert "# TYPE tidemill_request_seconds histogram\n" in text
    bucket = 'tidemill_request_seconds_bucket{route="execute_statement",le="+Inf"}'
    assert f"{bucket} {sum(r['value'] for r in counted)}\n" in text
    assert 'tidemill_job_state_bytes{job="j"} 9\n' in text


def test_rows_in_arrow_and_as_events(ask: Ask) -> None:
    operation = ask.submit(ask.session(), "x")
    while ask("GET", f"/v4{operation}/status")[1]["status"] != "FINISHED":
        continue
    connection = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=60)
    connection.request("GET", f"/v4{operation}/result/0", headers={"Accept": "text/event-stream"})
    page, end = connection.getresponse().read().decode().strip().split("\n\n")
    kind, identity, data = page.split("\n")
    assert (kind, identity) == ("event: page", "id: 1")
    assert [r["fields"] for r in json.loads(data.removeprefix("data: "))["results"]["data"]] == [
        [0],
        [1],
        [2],
    ]
    assert end.startswith("event: end\n")
    again = ask.submit(ask.session(), "x")
    while ask("GET", f"/v4{again}/status")[1]["status"] != "FINISHED":
        continue
    connection.request("GET", f"/v4{again}/result/0?seconds=0", headers={"Accept": "text/event-stream"})
    (alone,) = connection.getresponse().read().decode().strip().split("\n\n")
    assert alone.startswith("event: page\nid: 1\n")
    connection.request("GET", f"/v4{again}/result/1?seconds=x", headers={"Accept": "text/event-stream"})
    refused = connection.getresponse()
    assert (refused.status, "(seconds)" in refused.read().decode()) == (400, True)
    connection.request(
        "GET", f"/v4{again}/result/0", headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    answer = connection.getresponse()
    rows = pa.ipc.open_stream(answer.read()).read_all()
    assert rows.to_pydict() == {"n": [0, 1, 2]}
    assert json.loads(rows.schema.metadata[b"tidemill"]) == {
        "version": 1,
        "isQueryResult": True,
        "resultKind": "SUCCESS_WITH_CONTENT",
        "columns": [{"name": "n", "logicalType": {"type": "BIGINT", "nullable": True}, "comment": None}],
    }
    assert answer.getheader("X-Next-Result-Uri") == f"/v4{again}/result/1"
    missing = f"/v4/sessions/{ask.session()}/operations/{NOBODY}/result/0"
    connection.request("GET", missing, headers={"Accept": "text/event-stream"})
    assert "Can not find the submitted operation" in connection.getresponse().read().decode()
    connection.close()


def test_a_request_that_trickles_in_is_given_up(tmp_path: Path) -> None:
    """A byte now and then holds no connection; whole headers do, however long the answer takes."""
    made, _ = gateway(tmp_path)
    keys = {"sql-gateway.endpoint.rest.port": "0", "tidemill.gateway.rest.header-timeout": "300 ms"}
    endpoint = RestEndpoint(made, Configuration(keys))
    endpoint.start()
    address = ("127.0.0.1", int(endpoint.address.rpartition(":")[2]))
    try:
        with socket.create_connection(address, timeout=60) as good:
            good.sendall(b"GET /info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n")
            with socket.create_connection(address, timeout=60) as slow:
                assert _is_given_up(slow)
            with socket.create_connection(address, timeout=60) as silent:
                assert silent.recv(1) == b""
            good.sendall(b" ")
            assert good.recv(12) == b"HTTP/1.1 200"
        with socket.create_connection(address, timeout=60) as long:
            long.sendall(
                b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n"
            )
            assert long.recv(12) == b"HTTP/1.1 413"
            assert _is_given_up(long)
    finally:
        endpoint.stop()
        made.close()


def test_a_request_that_is_too_long_is_answered_whatever_follows(ask: Ask) -> None:
    """Its length may be said, or not; the connection can be used again when all of it has come."""
    line = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n"
    part = b"2000\r\n" + b"x" * 8_192 + b"\r\n"
    for begin, rest in (
        (b"Content-Length: 20000\r\n\r\n", b"x" * 20_000),
        (b"Transfer-Encoding: chunked\r\n\r\n" + part * 2, part * 50 + b"0\r\n\r\n"),
    ):
        with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
            client.sendall(line + begin)
            status, content = _answer(client)
            assert status == 413
            assert b"longer than 10240 bytes" in content
            client.sendall(rest + b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert _answer(client)[0] == 200


@pytest.mark.parametrize(
    ("chunked", "asked"), [(False, b""), (True, b""), (True, b"Expect: 100-continue\r\n")]
)
def test_who_sends_all_before_he_reads_sees_that_it_was_too_long(
    ask: Ask, chunked: bool, asked: bytes
) -> None:
    """More than lies in sockets, on a connection for one request: it is not reset."""
    size, head = 20 << 20, b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + asked
    if chunked:
        sent = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + b"x" * size + b"\r\n0\r\n\r\n"
    else:
        sent = head + b"Content-Length: %d\r\n\r\n" % size + b"x" * size
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(1_000), b"")).removeprefix(
            b"HTTP/1.1 100 Continue\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"longer than 10240 bytes" in answer
    assert ask("GET", "/v1/info")[0] == 200


def test_a_body_that_was_refused_before_it_came_is_no_next_request(ask: Ask) -> None:
    """Who asked whether to send it has his answer, and may do either."""
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        client.sendall(
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        answer = b"".join(iter(lambda: client.recv(1_000), b""))
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000_000,
        b"what is this?" + b"x" * 20_000_000,
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz"
        + b"x" * 20_000_000,
    ],
)
def test_who_sends_all_of_what_is_no_request_sees_the_answer(ask: Ask, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        client.sendall(sent)
        assert b"".join(iter(lambda: client.recv(1_000), b"")).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000,
        b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n" + b"X: 0123456789\r\n" * 70_000,
        b"GET /" + b"x" * 1_000_000,
    ],
)
def test_a_head_has_an_end(ask: Ask, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        for start in range(0, len(head), 5_000):
            client.sendall(head[start : start + 5_000])
        assert _answer(client)[0] == 400


def test_requests_one_behind_the_other_and_one_for_another_protocol(ask: Ask) -> None:
    """As some clients send them: a line between requests, two at once, an upgrade that is not taken."""
    info = b"GET /v1/info/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
    opening = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n" + upgrade + b"\r\n{}"
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        client.sendall(info + info)
        assert [_answer(client)[0], _answer(client)[0]] == [200, 200]
        client.sendall(b"\r\n" + info)
        assert _answer(client)[0] == 200
        client.sendall(opening)
        status, content = _answer(client)
        assert (status, "sessionHandle" in json.loads(content)) == (200, True)
        client.sendall(b"HEAD /v1/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head = b"".join(iter(lambda: client.recv(1_000), b""))
        assert head.startswith(b"HTTP/1.1 200")
        assert head.endswith(b"\r\n\r\n")


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(ask: Ask) -> None:
    with socket.create_connection(("127.0.0.1", ask.port), timeout=60) as client:
        asking = b"Host: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        client.sendall(b"POST /v1/sessions HTTP/1.1\r\n" + asking)
        assert client.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert _answer(client)[0] == 200


def _answer(client: socket.socket) -> tuple[int, bytes]:
    """One answer, which says how long it is; what follows it stays."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        one = client.recv(1)
        assert one, head
        head += one
    length = next(
        int(v) for k, _, v in (x.partition(b":") for x in head.split(b"\r\n")) if k == b"content-length"
    )
    content = b""
    while len(content) < length:
        content += client.recv(length - len(content))
    return int(head.split()[1]), content


def _is_given_up(slow: socket.socket) -> bool:
    for _ in range(6_000):
        try:
            slow.sendall(b"x")
        except OSError:
            return True
        time.sleep(0.01)
    return False
