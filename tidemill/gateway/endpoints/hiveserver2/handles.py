"""Handles of the protocol, which contain the service's handles, so that they stay valid after a restart.

A request names only an operation, but the service also needs its session, and the form of rows depends on the
session's protocol version. A handle has 16 bytes beside its UUID. They hold the session's UUID; the digit
that is 4 in all random UUIDs is replaced by the protocol version.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from tidemill.gateway.api import GatewayError
from tidemill.gateway.endpoints.hiveserver2.structs import structs

_PLACE = 6
_RANDOM = 4
NEWEST = 10
"""Version 11: the enum begins with 0."""


class HandleError(GatewayError):
    """The bytes are no handle of this gateway."""


@dataclass(frozen=True, slots=True)
class SessionRef:
    session: str
    version: int


@dataclass(frozen=True, slots=True)
class OperationRef:
    operation: str
    session: str
    version: int


def session_handle(ref: SessionRef) -> Any:
    found = structs()
    guid = uuid.UUID(ref.session).bytes
    return found.TSessionHandle(found.THandleIdentifier(guid, _stamped(guid, ref.version)))


def operation_handle(ref: OperationRef, kind: int) -> Any:
    found = structs()
    secret = _stamped(uuid.UUID(ref.session).bytes, ref.version)
    identifier = found.THandleIdentifier(uuid.UUID(ref.operation).bytes, secret)
    return found.TOperationHandle(identifier, kind, True)


def session_of(handle: Any) -> SessionRef:
    """HandleError for what is none."""
    guid, session, version = _parts(handle and handle.sessionId, "session")
    if guid != session:
        raise HandleError("The session handle is none of this gateway's.")
    return SessionRef(session, version)


def operation_of(handle: Any) -> OperationRef:
    """HandleError for what is none."""
    return OperationRef(*_parts(handle and handle.operationId, "operation"))


def _parts(identifier: Any, of: str) -> tuple[str, str, int]:
    guid, secret = (identifier.guid, identifier.secret) if identifier is not None else (None, None)
    if guid is None or secret is None or (len(guid), len(secret)) != (16, 16):
        raise HandleError(f"The request has no {of} handle.")
    version = secret[_PLACE] >> 4
    if version > NEWEST:
        raise HandleError(f"The {of} handle is none of this gateway's.")
    return str(uuid.UUID(bytes=guid)), str(uuid.UUID(bytes=_stamped(secret, _RANDOM))), version


def _stamped(guid: bytes, digit: int) -> bytes:
    return guid[:_PLACE] + bytes([guid[_PLACE] & 0x0F | digit << 4]) + guid[_PLACE + 1 :]
