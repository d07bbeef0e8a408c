"""A client of HiveServer2's protocol, over what a library gives: calls, and results as columns or rows."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport.buffered import TBufferedTransport
from thriftpy2.transport.framed import TFramedTransport
from thriftpy2.transport.socket import TSocket

from tidemill.gateway.endpoints.hiveserver2.structs import structs

VALUES = ("boolVal", "byteVal", "i16Val", "i32Val", "i64Val", "doubleVal", "stringVal", "binaryVal")


PLUGS: list[Any] = []
"""All that are open: a test closes them."""


@dataclass
class Client:
    """One connection with one session."""

    wire: Any
    session: Any = None
    opened: Any = field(default=None)

    @classmethod
    def connected(
        cls,
        port: int,
        conf: Mapping[str, str] | None = None,
        *,
        version: int = 9,
        plain: tuple[str, str] | None = None,
        user: tuple[str, str] = ("someone", "secret"),
    ) -> Self:
        made = cls(
            TClient(structs().TCLIService, TBinaryProtocol(_transport(port, plain), decode_response=False))
        )
        request = structs().TOpenSessionReq(version, *user, dict(conf or {}))
        made.opened = made.ask("OpenSession", request)
        made.session = made.opened.sessionHandle
        return made

    def ask(self, method: str, request: Any, *, good: bool = True) -> Any:
        answer = getattr(self.wire, method)(request)
        assert (answer.status.statusCode == 0) is good, answer.status
        return answer

    def of(self, method: str, *, good: bool = True, **fields: Any) -> Any:
        """A call about the session, or an operation."""
        request = getattr(structs(), f"T{method}Req")(**fields)
        if hasattr(request, "sessionHandle") and request.sessionHandle is None:
            request.sessionHandle = self.session
        return self.ask(method, request, good=good)

    def run(self, sql: str, *, good: bool = True, **fields: Any) -> Any:
        """The operation's handle, or where it is no good one the status."""
        answer = self.of("ExecuteStatement", statement=sql, good=good, **fields)
        return answer.operationHandle if good else answer.status

    def rows(self, operation: Any, most: int = 1000, orientation: int = 0) -> list[tuple[Any, ...]]:
        """One page."""
        answer = self.of("FetchResults", operationHandle=operation, orientation=orientation, maxRows=most)
        found: list[tuple[Any, ...]] = rows(answer.results)
        assert answer.hasMoreRows is bool(found)
        return found

    def all(self, sql: str) -> list[tuple[Any, ...]]:
        operation = self.run(sql)
        found: list[tuple[Any, ...]] = []
        while page := self.rows(operation):
            found += page
        self.of("CloseOperation", operationHandle=operation)
        return found

    def types(self, operation: Any) -> list[tuple[str, int]]:
        columns = self.of("GetResultSetMetadata", operationHandle=operation).schema.columns
        return [(text(c.columnName), c.typeDesc.types[0].primitiveEntry.type) for c in columns]


def rows(found: Any) -> list[tuple[Any, ...]]:
    """Of a TRowSet, by whichever of its two forms it has."""
    if found.columns is None:
        return [tuple(_cell(value) for value in row.colVals) for row in found.rows]
    return list(zip(*(_column(c) for c in found.columns), strict=True))


def text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _cell(value: Any) -> Any:
    (held,) = [getattr(value, name) for name in VALUES[:-1] if getattr(value, name) is not None]
    return text(held.value)


def _column(column: Any) -> list[Any]:
    ((name, held),) = [(n, getattr(column, n)) for n in VALUES if getattr(column, n) is not None]
    missing = [held.nulls[row // 8] >> row % 8 & 1 for row in range(len(held.values))]
    values = held.values if name == "binaryVal" else map(text, held.values)
    return [None if gone else value for gone, value in zip(missing, values, strict=True)]


def _transport(port: int, plain: tuple[str, str] | None) -> Any:
    plug = TSocket("127.0.0.1", port, socket_timeout=120_000)
    plug.open()
    PLUGS.append(plug)
    if plain is None:
        return TBufferedTransport(plug)
    negotiate(plug.sock, *plain)
    return TFramedTransport(plug)


def negotiate(plug: socket.socket, name: str, password: str) -> None:
    """SASL PLAIN; PermissionError with the server's words."""
    said = f"\0{name}\0{password}".encode()
    for status, payload in ((1, b"PLAIN"), (5, said)):
        plug.sendall(struct.pack("!BI", status, len(payload)) + payload)
    status, size = struct.unpack("!BI", received(plug, 5))
    words = received(plug, size)
    if status != 5:
        raise PermissionError(words.decode())


def received(plug: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = plug.recv(size - len(found))
        if not data:
            raise EOFError(found)
        found += data
    return found
