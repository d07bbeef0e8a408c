"""HiveServer2's protocol over a real socket, SQL and all."""

from __future__ import annotations

import base64
import http.client
import io
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from thriftpy2.protocol import binary

from tests.gateway.fakes import Gate, gateway
from tests.gateway.hiveserver2_client import PLUGS, Client, received, rows, text
from tidemill.config.option import Configuration
from tidemill.errors import SetupError
from tidemill.gateway.endpoints.hiveserver2.endpoint import HiveServer2Endpoint
from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.gateway.start import GatewayProcess

BATCH = {"set:hiveconf:execution.runtime-mode": "batch"}
NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""
FINISHED, ERROR = 2, 5
INVALID_HANDLE = 4
FIRST = 4


@pytest.fixture(scope="module")
def house(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = str(tmp_path_factory.mktemp("gateway"))
    made = GatewayProcess(Configuration({"tidemill.gateway.directory": folder, "parallelism.default": "1"}))
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def port(house: GatewayProcess) -> Iterator[int]:
    with listening(house) as found:
        yield found


@pytest.fixture(autouse=True)
def _unplugged() -> Iterator[None]:
    yield
    while PLUGS:
        PLUGS.pop().close()


@contextmanager
def listening(house: GatewayProcess, options: Mapping[str, str] | None = None) -> Iterator[int]:
    keys = {"sql-gateway.endpoint.hiveserver2.thrift.port": "0", **(options or {})}
    endpoint = HiveServer2Endpoint(house.gateway, Configuration(keys))
    endpoint.start()
    try:
        yield int(endpoint.address.rpartition(":")[2])
    finally:
        endpoint.stop()


VALUES = """SELECT TRUE, CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.1 AS FLOAT),
 CAST(2.25 AS DOUBLE), CAST(-1.50 AS DECIMAL(10, 2)), CAST('zwölf 二' AS STRING), DATE '2020-02-02',
 TIMESTAMP '2020-01-01 00:00:10.120', x'00ff', ARRAY[1, NULL], MAP['k', CAST(1.50 AS DECIMAL(5, 2))],
 ROW(1, 'x'),
 TIME '01:02:03', INTERVAL '1-2' YEAR TO MONTH, CAST('ab' AS CHAR(3)), CAST('v' AS VARCHAR(9)),
 CAST(TIMESTAMP '2020-07-01 12:00:00' AS TIMESTAMP_LTZ(3))"""
NULLS = "SELECT " + ", ".join(
    f"CAST(NULL AS {kind})"
    for kind in (
        *(
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INT",
            "BIGINT",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(10, 2)",
            "STRING",
            "DATE",
        ),
        *(
            "TIMESTAMP(3)",
            "BYTES",
            "ARRAY<INT>",
            "MAP<STRING, DECIMAL(5, 2)>",
            "ROW<a INT, b STRING>",
            "TIME",
        ),
        *("INTERVAL YEAR TO MONTH", "CHAR(3)", "VARCHAR(9)", "TIMESTAMP_LTZ(3)"),
    )
)


@pytest.mark.parametrize("version", [0, 4, 5, 9, 10, 99])
def test_values_and_their_types(port: int, version: int) -> None:
    zone = {
        "set:hiveconf:table.local-time-zone": "Europe/Paris",
        "set:hiveconf:hive.x": "1",
        "set:hivevar:y": "2",
    }
    client = Client.connected(port, {**BATCH, **zone}, version=version)
    assert client.opened.serverProtocolVersion == min(version, 10)
    operation = client.run(VALUES)
    (row,) = client.rows(operation)
    nested = ("[1,null]", '{"k":1.50}', '{"EXPR$0":1,"EXPR$1":"x"}')
    assert row[11] == (b"\x00\xff" if version >= 5 else "\0\ufffd")
    assert row[:11] == (
        True,
        1,
        2,
        3,
        4,
        1.1,
        2.25,
        "-1.50",
        "zwölf 二",
        "2020-02-02",
        "2020-01-01 00:00:10.12",
    )
    assert row[12:] == (*nested, "01:02:03", "+1-02", "ab ", "v", "2020-07-01 12:00:00")
    intervals = 20 if version >= 7 else 7
    kinds = [kind for _, kind in client.types(operation)]
    assert kinds == [0, 1, 2, 3, 4, 5, 6, 15, 7, 17, 8, 9, 10, 11, 12, 7, intervals, 19, 18, 8]
    (nothing,) = client.all(NULLS)
    assert nothing == (None,) * 20
    assert client.rows(operation) == []


def test_statements_errors_and_what_a_session_is(port: int) -> None:
    client = Client.connected(port, {"use:database": "default", **BATCH})
    status = client.run("SELEC 1", good=False)
    assert (status.statusCode, text(status.sqlState)) == (3, "42000")
    assert "SQL parse failed" in text(status.errorMessage)
    operation = client.run("SELECT CAST('x' AS INT)", runAsync=True)
    while (answer := client.of("GetOperationStatus", operationHandle=operation)).operationState != ERROR:
        assert answer.operationState in (0, 1, 7)
    assert "NumberFormatException" in text(answer.errorMessage)
    assert text(answer.sqlState) == "22000"
    refused = client.of("FetchResults", operationHandle=operation, orientation=0, maxRows=1, good=False)
    assert "NumberFormat" in text(refused.status.errorMessage)
    client.run("USE `default`")
    numbers = client.run("SELECT * FROM (VALUES (1), (2), (3)) AS t(n) ORDER BY n")
    assert client.rows(numbers, 2) == [(1,), (2,)]
    assert client.rows(numbers, 2, FIRST) == [(1,), (2,)]
    assert [client.rows(numbers, 2) for _ in range(2)] == [[(3,)], []]
    refused = client.of("FetchResults", operationHandle=numbers, orientation=5, maxRows=1, good=False)
    assert text(refused.status.sqlState) == "0A000"
    log = client.of("FetchResults", operationHandle=numbers, orientation=0, maxRows=9, fetchType=1)
    assert [("ended: FINISHED" in line) for (line,) in rows(log.results)] == [False, False, True]
    log = client.of("FetchResults", operationHandle=numbers, orientation=0, maxRows=9, fetchType=1)
    assert rows(log.results) == []
    progress = client.of("GetOperationStatus", operationHandle=numbers, getProgressUpdate=True)
    assert (progress.progressUpdateResponse.status, progress.operationState) == (1, FINISHED)
    client.of("CloseOperation", operationHandle=numbers)
    gone = client.of("GetResultSetMetadata", operationHandle=numbers, good=False)
    assert gone.status.statusCode == INVALID_HANDLE
    other = Client.connected(port)
    client.of("CloseSession")
    assert client.of("CloseSession", good=False).status.statusCode == INVALID_HANDLE
    assert client.run("SELECT 1", good=False).statusCode == INVALID_HANDLE
    assert other.of("GetInfo", infoType=17).infoValue.stringValue == b"Apache Flink"
    assert text(other.of("GetInfo", infoType=4711, good=False).status.sqlState) == "0A000"


def test_what_jdbc_asks(port: int) -> None:
    client = Client.connected(port)
    client.all("CREATE TABLE a_b (id BIGINT NOT NULL, d DECIMAL(7, 2), PRIMARY KEY (id) NOT ENFORCED) "
               "WITH ('connector'='blackhole')")  # fmt: skip
    client.all("CREATE TABLE axb (s STRING) COMMENT 'c' WITH ('connector'='blackhole')")
    client.all("CREATE VIEW v AS SELECT 1 AS n")

    def told(method: str, *places: int, **fields: Any) -> list[tuple[object, ...]]:
        operation = client.of(method, **fields).operationHandle
        found = client.rows(operation)
        assert client.rows(operation) == []
        return [tuple(row[place] for place in places) for row in found]

    assert client.rows(client.run("SELECT current_database()")) == [("default_database",)]
    assert told("GetCatalogs", 0) == [("default_catalog",)]
    assert told("GetSchemas", 0, 1) == [("default_database", "default_catalog")]
    assert told("GetSchemas", 0, catalogName="nosuch") == []
    assert told("GetTables", 2, 3, 4, tableName="a_b") == [("a_b", "TABLE", ""), ("axb", "TABLE", "c")]
    assert told("GetTables", 2, tableName="a\\_b", schemaName="def%") == [("a_b",)]
    assert told("GetTables", 2, tableTypes=["VIEW"]) == [("v",)]
    assert told("GetTableTypes", 0) == [("TABLE",), ("VIEW",)]
    columns = told("GetColumns", 3, 4, 5, 6, 8, 16, 17, tableName="a\\_b")
    assert columns == [("id", -5, "BIGINT", 19, 0, 1, "NO"), ("d", 3, "DECIMAL(7, 2)", 7, 2, 2, "YES")]
    assert told("GetPrimaryKeys", 2, 3, 4, tableName="a\\_b") == [("a_b", "id", 1)]
    assert told("GetCrossReference", parentTableName="a_b") == []
    assert told("GetFunctions", 2, functionName="UPP%") == [("upper",)]
    assert ("DECIMAL", 3) in told("GetTypeInfo", 0, 1)
    nobody = client.of("GetColumns", sessionHandle=structs().TSessionHandle(), good=False)
    assert nobody.status.statusCode == INVALID_HANDLE


def test_a_stream_gives_rows_until_it_is_cancelled(port: int) -> None:
    client = Client.connected(port)
    client.all(NUMBERS)
    operation = client.run("SELECT id FROM g")
    found: list[tuple[int, ...]] = []
    while len(found) < 60:
        found += client.rows(operation)
    assert found[:60] == [(n,) for n in range(1, 61)]
    client.of("CancelOperation", operationHandle=operation)
    while page := client.rows(operation):
        found += page
    assert found == [(n,) for n in range(1, len(found) + 1)]
    counts = client.run("SELECT COUNT(*) FROM g")
    assert client.rows(counts, 1) == [(1,)]
    refused = client.of("FetchResults", operationHandle=counts, orientation=0, maxRows=1, good=False)
    assert "cannot express" in text(refused.status.errorMessage)


def test_a_changelog_as_the_table_that_it_makes(port: int) -> None:
    client = Client.connected(port, {"set:hiveconf:tidemill.gateway.hiveserver2.result-mode": "table"})
    words = "(VALUES ('a', 1), ('b', 2), ('a', 3), ('b', CAST(NULL AS INT)), ('c', 0)) AS t(w, n)"
    assert sorted(client.all(f"SELECT w, COUNT(*), SUM(n) FROM {words} GROUP BY w")) == [
        ("a", 2, 4), ("b", 2, 2), ("c", 1, 0)
    ]  # fmt: skip
    assert client.all(f"SELECT 1 FROM {words}") == [(1,)] * 5
    assert client.all(f"SELECT MAX(w) AS m FROM {words} HAVING COUNT(*) > 9") == []


USERS = {
    "tidemill.gateway.authentication": "PASSWORD",
    "tidemill.gateway.authenticator": f"{__name__}:is_right",
}


def is_right(name: str, password: str) -> bool:
    return (name, password) in (("ann", "a"), ("bob", "b"))


def test_users_by_every_transport(house: GatewayProcess) -> None:
    with listening(house, USERS) as port:
        ann, bob = Client.connected(port, plain=("ann", "a")), Client.connected(port, user=("bob", "b"))
        assert ann.all("SELECT 1") == [(1,)]
        bob.session, own = ann.session, bob.session
        assert bob.run("SELECT 1", good=False).statusCode == INVALID_HANDLE
        bob.session = own
        assert bob.all("SELECT 1") == [(1,)]
        with pytest.raises(PermissionError, match="password is wrong"):
            Client.connected(port, plain=("ann", "b"))
        with pytest.raises(AssertionError, match="28000"):
            Client.connected(port, user=("ann", "b"))
        assert posted(port, b"", Authorization="Basic eDp5")[0] == 401
        call = message("OpenSession", structs().TOpenSessionReq(9))
        status, answer = posted(port, call, Authorization="Basic " + base64.b64encode(b"ann:a").decode())
        assert (status, answer[4:19]) == (200, struct.pack("!i", 11) + b"OpenSession")
        assert posted(port, call, Origin="http://elsewhere")[0] == 403
        basic = b"Authorization: Basic " + base64.b64encode(b"ann:a") + b"\r\n"
        head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n" + basic
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(call), call)
        with socket.create_connection(("127.0.0.1", port), 60) as plug:
            for _ in range(2):
                plug.sendall(head + b"\r\n")
                assert received(plug, 25) == b"HTTP/1.1 100 Continue\r\n\r\n"
                plug.sendall(chunks)
                assert received(plug, 15) == b"HTTP/1.1 200 OK"
                rest = b""
                while not rest.endswith(b"\r\n\r\n"):
                    rest += received(plug, 1)
                assert b"OpenSession" in received(plug, int(rest.split(b"Content-Length: ")[1].split()[0]))
            two = head.replace(b"Expect: 100-continue\r\n", b"") + b"\r\n" + chunks
            plug.sendall(two + two)
            assert received(plug, 12) == b"HTTP/1.1 400"
    with (
        pytest.raises(SetupError, match="without authentication"),
        listening(house, {"sql-gateway.endpoint.hiveserver2.thrift.host": "0.0.0.0"}),
    ):
        pass


def test_a_client_that_goes_stops_what_it_waits_for(tmp_path: Path) -> None:
    gate = Gate()
    service, _ = gateway(tmp_path, {"wait": gate})
    keys = {"sql-gateway.endpoint.hiveserver2.thrift.port": "0"}
    endpoint = HiveServer2Endpoint(service, Configuration(keys))
    endpoint.start()
    client = Client.connected(int(endpoint.address.rpartition(":")[2]))
    PLUGS[-1].sock.sendall(
        message("ExecuteStatement", structs().TExecuteStatementReq(client.session, "wait"))
    )
    assert gate.running.wait(60)
    PLUGS.pop().close()
    assert gate.let.wait(60)
    assert gate.stopped
    endpoint.stop()
    service.close()


BAD = {
    "garbage": b"\x07hello",
    "another version": struct.pack("!I", 0x80020001),
    "a long name": struct.pack("!Ii", 0x80010001, 1 << 30),
    "a text of 2 GB": struct.pack("!Ii4siBhBhi", 0x80010001, 4, b"Nope", 0, 11, 1, 11, 1, (1 << 31) - 1),
    "a list without end": struct.pack("!Ii4siBhBi", 0x80010001, 4, b"Nope", 0, 15, 1, 0, (1 << 31) - 1),
    "deep": struct.pack("!Ii4si", 0x80010001, 4, b"Nope", 0) + b"\x0c\0\x01" * 10_000,
    "SASL of another kind": b"\x01\0\0\0\x06GSSAPI",
    "SASL without end": b"\x01\xff\xff\xff\xff",
    "a page": b"GET / HTTP/1.1\r\n\r\n",
    "no length": b"POST / HTTP/1.1\r\n\r\n",
    "too long a body": b"POST / HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n",
    "a line without end": b"P" * 70_000,
    "a header without end": b"POST / HTTP/1.1\r\nX: " + b"x" * 700_000,
    "a length that is none": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "another protocol": b"POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
}


@pytest.mark.parametrize("said", BAD.values(), ids=BAD.keys())
def test_what_nobody_understands_ends_its_connection_alone(port: int, said: bytes) -> None:
    client = Client.connected(port)
    with socket.create_connection(("127.0.0.1", port), 60) as bad:
        bad.sendall(said)
        bad.shutdown(socket.SHUT_WR)
        while bad.recv(1 << 16):
            pass
    assert client.of("GetInfo", infoType=18).infoValue.stringValue == b"2.3.0"


def test_who_sends_all_of_what_is_too_long_sees_the_answer(port: int) -> None:
    """It is more than lies in sockets: the connection is not reset before it is read."""
    size = 120 << 20
    rest = b"x" * (20 << 20)
    for said, told, reason in (
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size, b"HTTP/1.1 413", b"bytes at most"),
        (struct.pack("!Ii", 0x80010001, 1 << 30), b"\x80\x01\0\x03", b"no method has a name"),
        (
            b"\x01\0\0\0\x05PLAIN\x05\0\0\0\x04\0a\0b" + struct.pack("!i", size),
            b"\x05\0\0\0\0",
            b"bytes at most",
        ),
    ):
        with socket.create_connection(("127.0.0.1", port), 60) as plug:
            plug.sendall(said + rest)
            with plug.makefile("rb") as answers:
                answer = answers.read()
            assert answer.startswith(told)
            assert reason in answer


def test_methods_that_the_protocol_has_not(port: int) -> None:
    """What they are given is skipped, bytes that are no text among it; the connection goes on."""
    with socket.create_connection(("127.0.0.1", port), 60) as plug:
        body = struct.pack("!BhBhi", 12, 1, 11, 1, 2) + b"\xff\xfe" + b"\0\0"
        for _ in range(2):
            plug.sendall(struct.pack("!Ii4si", 0x80010001, 4, b"Nope", 7) + body)
            answer = received(plug, 4 + 4 + 4 + 4 + 7)
            assert answer[:16] == struct.pack("!Ii4si", 0x80010003, 4, b"Nope", 7)
            size = int.from_bytes(answer[19:23], "big")
            assert received(plug, size + 8)[:size] == b"Invalid method name: 'Nope'"


def message(method: str, request: Any) -> bytes:
    out = io.BytesIO()
    binary.write_message_begin(out, method, 1, 0)
    binary.write_val(out, 12, getattr(structs().TCLIService, f"{method}_args")(request))
    return out.getvalue()


def posted(port: int, body: bytes, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/cliservice", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
