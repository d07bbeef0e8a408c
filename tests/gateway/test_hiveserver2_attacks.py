"""HiveServer2's protocol from the outside: bytes that are no calls, others' handles, clients that take ages.

Calls are changed at random and answered without a socket. Each answer is a whole message of the protocol, no
call fails in a way that it should not, and nobody gets another user's rows. ``--requests=N --seed=S`` sends
more, and others.
"""

from __future__ import annotations

import io
import logging
import random
import socket
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.protocol import binary
from thriftpy2.thrift import TMessageType, TType

from tests.gateway.fakes import gateway
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.hiveserver2.caller import Caller, Logs
from tidemill.gateway.endpoints.hiveserver2.connection import METHODS, answered_whole
from tidemill.gateway.endpoints.hiveserver2.endpoint import HiveServer2Endpoint
from tidemill.gateway.endpoints.hiveserver2.handles import (
    OperationRef,
    SessionRef,
    operation_handle,
    session_handle,
)
from tidemill.gateway.endpoints.hiveserver2.stream import ClosedError, Stream
from tidemill.gateway.endpoints.hiveserver2.structs import call_structs, structs
from tidemill.gateway.service.service import Gateway

TEXTS = ("", "x", "%a" * 20, "SELECT 1", "\0", "zwölf", "default", "tidemill", "`", "9" * 300)
NUMBERS = (0, 1, -1, 5, 255, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1)


@dataclass
class Attacker:
    """Somebody with a login of his own, who knows the handles of the user ``owner``."""

    gateway: Gateway
    chance: random.Random
    sessions: list[str] = field(default_factory=list)
    operations: list[tuple[str, str]] = field(default_factory=list)
    asked: int = 0

    def ask(self, message: bytes, user: str = "attacker") -> bytes:
        self.asked += 1
        caller = Caller(gateway=self.gateway, is_there=self._listens_a_while(), logs=Logs(), user=user)
        return answered_whole(caller, message)

    def _listens_a_while(self) -> Any:
        left = iter((True, False))
        return lambda: next(left, False)

    def call(self) -> tuple[str, Any]:
        method = self.chance.choice([name for name in METHODS if name != "GetQueryId"])
        known = call_structs(method)
        assert known is not None
        return method, self.value(TType.STRUCT, known[0], 6)

    def value(self, kind: int, of: Any, depth: int) -> Any:
        """A value of that type, mostly one that could be meant."""
        pick = self.chance.choice
        if kind == TType.STRUCT:
            return self.struct(of, depth)
        if kind == TType.LIST:
            element, inner = of if isinstance(of, tuple) else (of, None)
            return [self.value(element, inner, depth - 1) for _ in range(pick((0, 1, 3)))]
        if kind == TType.MAP:
            return {pick(TEXTS): pick(TEXTS) for _ in range(pick((0, 1, 3)))}
        if kind == TType.BOOL:
            return pick((True, False))
        if kind == TType.DOUBLE:
            return pick((0.0, float("nan")))
        if kind in (TType.STRING, TType.BINARY):
            return pick(TEXTS) if kind == TType.STRING else pick((b"", b"\xff" * 16, b"x"))
        bits = {TType.BYTE: 8, TType.I16: 16, TType.I32: 32}.get(kind, 64)
        number = pick((*NUMBERS, 0, 1, 2))
        return number if -(1 << bits - 1) <= number < 1 << bits - 1 else 1

    def struct(self, of: Any, depth: int) -> Any:
        if of is structs().TSessionHandle and self.chance.random() < 0.8:
            return session_handle(SessionRef(self.chance.choice(self.sessions), self.chance.randrange(11)))
        if of is structs().TOperationHandle and self.chance.random() < 0.8:
            operation, session = self.chance.choice(self.operations)
            return operation_handle(OperationRef(operation, session, self.chance.randrange(11)), 0)
        made = of()
        for kind, name, *rest in of.thrift_spec.values():
            if depth and self.chance.random() < 0.8:
                setattr(made, name, self.value(kind, rest[0], depth - 1))
        return made

    def broken(self, message: bytes) -> bytes:
        """Bytes of a call, of which some are gone, others, or more."""
        found, chance = bytearray(message), self.chance
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(found) or 1)
            cut = slice(at, at + chance.choice((0, 1, 4, len(found))))
            found[cut] = chance.choice(
                (b"", chance.randbytes(1), struct.pack("!i", chance.choice(NUMBERS[:-1])), b"\x0c\0\1")
            )
        return bytes(found)


def encoded(method: str, request: Any) -> bytes:
    out = io.BytesIO()
    binary.write_message_begin(out, method, TMessageType.CALL, 7)
    arguments = getattr(structs().TCLIService, f"{method}_args")()
    setattr(arguments, arguments.thrift_spec[1][1], request)
    binary.write_val(out, TType.STRUCT, arguments)
    return out.getvalue()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Gateway]:
    made, _ = gateway(tmp_path, sql_gateway__session__max_num="50")
    yield made
    made.close()


@pytest.fixture
def attacker(service: Gateway, request: pytest.FixtureRequest) -> Attacker:
    made = Attacker(service, random.Random(request.config.getoption("--seed")))
    for user in ("owner", "attacker"):
        session = service.open_session({}, user=user)
        operation = service.execute(session, "SELECT 1", user=user)
        service.wait(session, operation, 60, user=user)
        made.sessions += [session, str(uuid.uuid4())]
        made.operations += [(operation, session), (operation, str(uuid.uuid4()))]
    return made


def test_random_calls_are_answered_and_tell_nothing_of_others(
    attacker: Attacker, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = attacker.gateway.sessions
    for _ in range(5 * request.config.getoption("--requests")):
        method, asked = attacker.call()
        own = {session.handle for session in sessions.of("attacker")}
        message = encoded(method, asked)
        whole = attacker.chance.random() < 0.6
        kind, values = decoded(attacker.ask(message if whole else attacker.broken(message)))
        assert kind in (TMessageType.REPLY, *([] if whole else [TMessageType.EXCEPTION])), method
        assert not whole or touched(asked) <= own or values.status.statusCode != 0, (method, asked)
        for session in sessions.of("attacker")[20:]:
            attacker.gateway.close_session(session.handle, user="attacker")
        if attacker.sessions[2] not in own:
            attacker.sessions[2] = attacker.gateway.open_session({}, user="attacker")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    (theirs,) = sessions.of("owner")
    (operation,) = theirs.operations.values()
    assert (operation.status.value.name, operation.info().error) == ("FINISHED", None)


def decoded(answer: bytes) -> tuple[int, Any]:
    """The kind of a message, and a reply's response; all bytes belong to it."""
    source = io.BytesIO(answer)
    method, kind, _ = binary.read_message_begin(source)
    values: Any = None
    if kind == TMessageType.REPLY:
        result = getattr(structs().TCLIService, f"{method}_result")()
        binary.read_struct(source, result, decode_response=False)
        values = result.success
    else:
        binary.skip(source, TType.STRUCT)
    assert source.read() == b""
    return kind, values


def touched(request: Any) -> set[str]:
    """The sessions that a call is about."""
    found = set()
    for handle in (getattr(request, name, None) for name in ("sessionHandle", "operationHandle")):
        identifier = handle and (getattr(handle, "sessionId", None) or getattr(handle, "operationId", None))
        if identifier and len(identifier.secret or b"") == 16:
            secret = identifier.secret
            found.add(str(uuid.UUID(bytes=secret[:6] + bytes([secret[6] & 15 | 64]) + secret[7:])))
    return found


def test_sessions_have_a_limit(attacker: Attacker) -> None:
    request = encoded("OpenSession", structs().TOpenSessionReq(9))
    answers = [decoded(attacker.ask(request))[1].status for _ in range(60)]
    assert [status.statusCode == 0 for status in answers] == [True] * 48 + [False] * 12
    assert answers[-1].sqlState == b"53000"


@dataclass
class Dripping:
    """A clock at which, each time somebody looks, some bytes come and some seconds have passed."""

    client: socket.socket
    bytes: int
    now: float = 0.0
    looks: int = 0

    def __call__(self) -> float:
        self.client.sendall(b"x" * self.bytes)
        self.now += 3.0
        self.looks += 1
        return self.now


@pytest.mark.parametrize(("drip", "whole"), [(1, False), (20_000, True)])
def test_a_message_that_comes_in_drips_is_given_up(drip: int, whole: bool) -> None:
    """A long one that comes as fast as a slow line is read."""
    client, server = socket.socketpair()
    with client, server:
        clock = Dripping(client, drip)
        stream = Stream(server, longest=1 << 20, patience=20.0, clock=clock)
        client.sendall(b"x")
        stream.begin()
        if whole:
            assert len(stream.read(400_000)) == 400_000
            return
        with pytest.raises(ClosedError):
            stream.read(400_000)
        assert clock.now < 30


@pytest.fixture
def port(service: Gateway) -> Iterator[int]:
    keys = {
        "sql-gateway.endpoint.hiveserver2.thrift.port": "0",
        "sql-gateway.endpoint.hiveserver2.thrift.login.timeout": "300 ms",
    }
    endpoint = HiveServer2Endpoint(service, Configuration(keys))
    endpoint.start()
    yield int(endpoint.address.rpartition(":")[2])
    endpoint.stop()


def test_who_does_not_log_in_keeps_no_connection(port: int) -> None:
    nothing = encoded("GetInfo", structs().TGetInfoReq(None, 18))
    with socket.create_connection(("127.0.0.1", port), 60) as plug:
        plug.sendall(nothing)
        assert decoded(plug.recv(1 << 16))[1].status.statusCode != 0
        assert plug.recv(1) == b""


def test_who_has_logged_in_may_be_silent(port: int) -> None:
    with (
        socket.create_connection(("127.0.0.1", port), 60) as plug,
        socket.create_connection(("127.0.0.1", port), 60) as stranger,
    ):
        plug.sendall(encoded("OpenSession", structs().TOpenSessionReq(9)))
        session = decoded(plug.recv(1 << 16))[1].sessionHandle
        assert stranger.recv(1) == b""
        plug.sendall(encoded("GetInfo", structs().TGetInfoReq(session, 18)))
        assert decoded(plug.recv(1 << 16))[1].status.statusCode == 0


def test_a_client_that_leaves_bytes_behind_has_gone() -> None:
    client, server = socket.socketpair()
    stream = Stream(server, longest=1 << 20, patience=20.0)
    with server:
        client.sendall(b"a call, and more")
        stream.begin()
        stream.read(6)
        assert stream.is_open()
        client.close()
        assert not stream.is_open()
