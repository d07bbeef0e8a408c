"""One client's connection, in a thread of its own.

The first byte tells the client's transport: SASL begins with 1, Thrift's binary protocol with 0x80, HTTP with
a letter. So one port serves all three.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from thriftpy2.thrift import TApplicationException

from tidemill.errors import InternalError, TidemillError
from tidemill.gateway.endpoints.hiveserver2 import http, sasl, sessions, statements, status
from tidemill.gateway.endpoints.hiveserver2.caller import Caller, GoneError, Logs
from tidemill.gateway.endpoints.hiveserver2.metadata import QUERIES, metadata_method
from tidemill.gateway.endpoints.hiveserver2.stream import ClosedError, Stream
from tidemill.gateway.endpoints.hiveserver2.structs import call_structs
from tidemill.gateway.endpoints.hiveserver2.wire import (
    Answer,
    Call,
    Held,
    Source,
    WireError,
    read_call,
    refusal,
    reply,
)
from tidemill.gateway.security.access import Access, AccessError
from tidemill.gateway.service.service import Gateway

_LOGGER = logging.getLogger("tidemill.gateway")
_BINARY = 0x80
_NO_CALL = Call("", 0, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """``login``: seconds within which a client must send its first message and authenticate."""

    stream: Stream
    gateway: Gateway
    access: Access
    logs: Logs
    login: float

    def serve(self) -> None:
        """Serves until the client disconnects, or sends an invalid message."""
        try:
            first = self.stream.begin(within=self.login)
            if first == sasl.START:
                self._framed()
            elif first == _BINARY:
                self._plain()
            elif first in http.LETTERS:
                self._http()
        except (ClosedError, GoneError):
            pass
        except WireError as e:
            _LOGGER.info("a client of HiveServer2's endpoint is not understood: %s", e)
            self.stream.drain()
        except Exception:
            _LOGGER.exception("a connection of HiveServer2's endpoint failed")

    def _plain(self) -> None:
        """Answers call by call. An invalid call ends the connection, since the start of the next is unknown.
        A client must authenticate within ``login`` seconds."""
        caller = self._caller("", log_in=self._log_in)
        end = self.stream.clock() + self.login
        while True:
            self.stream.begin(within=None if caller.is_known else max(end - self.stream.clock(), 0))
            try:
                self.stream.write(answered(caller, self.stream))
            except WireError as e:
                self.stream.write(_not_understood(e))
                raise

    def _framed(self) -> None:
        name, password = sasl.credentials(self.stream)
        try:
            caller = self._caller(self._log_in(name, password))
        except AccessError as e:
            sasl.refuse(self.stream, e)
            return
        sasl.accept(self.stream)
        while True:
            self.stream.begin()
            try:
                message = sasl.frame(self.stream)
            except WireError as e:
                self.stream.write(sasl.framed(_not_understood(e)))
                raise
            self.stream.write(sasl.framed(answered_whole(caller, message)))

    def _http(self) -> None:
        def answer(user: str, message: bytes) -> bytes:
            return answered_whole(self._caller(user), message)

        http.serve(self.stream, lambda said: self.access.user(said, self.stream.address), answer)

    def _log_in(self, name: str, password: str) -> str:
        return self.access.by_password(name, password, self.stream.address)

    def _caller(self, user: str, log_in: Callable[[str, str], str] | None = None) -> Caller:
        return Caller(
            gateway=self.gateway, is_there=self.stream.is_open, logs=self.logs, user=user, log_in=log_in
        )


def answered_whole(caller: Caller, message: bytes) -> bytes:
    """The answer to a complete message; Thrift's own error if it is no valid call."""
    try:
        return answered(caller, Held(message))
    except WireError as e:
        return _not_understood(e)


def _not_understood(error: WireError) -> bytes:
    return refusal(_NO_CALL, TApplicationException.PROTOCOL_ERROR, str(error))


def answered(caller: Caller, source: Source) -> bytes:
    call = read_call(source)
    call_types = call_structs(call.method)
    if call_types is None:
        return refusal(call, TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{call.method}'")
    return reply(call, _answer(METHODS[call.method], caller, call, call_types[1]))


def _answer(
    method: Callable[[Caller, object], Answer], caller: Caller, call: Call, response: type[object]
) -> Answer:
    """Calls the method. The response's status has its error."""
    try:
        return method(caller, call.request)
    except TidemillError as e:
        error = e
    except GoneError:
        raise
    except Exception as e:
        _LOGGER.exception("%s failed in a way that it should not", call.method)
        error = InternalError(f"{type(e).__name__}: {e}")
    failure = response()
    failure.status = status.failed(error)  # type: ignore[attr-defined]  # Thrift makes its fields
    return Answer(failure)


Method = Callable[[Caller, Any], Answer]


METHODS: Mapping[str, Method] = {
    "OpenSession": sessions.open_session,
    "CloseSession": sessions.close_session,
    "SetClientInfo": sessions.client_info,
    "GetInfo": sessions.info,
    "GetDelegationToken": sessions.no_token,
    "CancelDelegationToken": sessions.no_token,
    "RenewDelegationToken": sessions.no_token,
    "ExecuteStatement": statements.execute,
    "GetOperationStatus": statements.operation_status,
    "CancelOperation": statements.cancel,
    "CloseOperation": statements.close,
    "GetResultSetMetadata": statements.metadata,
    "FetchResults": statements.fetch,
    "GetQueryId": statements.query_id,
    **{query.method: metadata_method(query) for query in QUERIES},
}
"""Which function answers which method of the protocol."""
