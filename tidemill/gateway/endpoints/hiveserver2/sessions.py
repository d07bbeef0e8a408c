"""Sessions of this wire: opened with a version of the protocol, settings, and a database to begin in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.errors import NotSupportedError, TidemillError
from tidemill.gateway.api import PRODUCT, VERSION
from tidemill.gateway.endpoints.hiveserver2 import status
from tidemill.gateway.endpoints.hiveserver2.caller import Caller
from tidemill.gateway.endpoints.hiveserver2.handles import NEWEST, SessionRef, session_handle, session_of
from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.gateway.endpoints.hiveserver2.wire import Answer

_SET, _CONF = "set:", "hiveconf:"
_USE = "use:database"
_NOT_OURS = ("hive.", "hivevar:")
_LONGEST_NAME = 128
_INFO: dict[int, str] = {13: PRODUCT, 17: PRODUCT, 18: VERSION, 29: "`"}
_LENGTHS = frozenset((30, 32, 35))
"""Of names of columns, schemas and tables."""


def open_session(caller: Caller, request: Any) -> Answer:
    """Settings come as ``set:hiveconf:KEY``; what else the client says of itself is not for the session."""
    found = structs()
    if caller.log_in is not None:
        caller.user = caller.log_in(request.username or "", request.password or "")
        caller.is_known = True
    given: Mapping[str, str] = request.configuration or {}
    version = min(max(request.client_protocol or 0, 0), NEWEST)
    handle = caller.gateway.open_session(_properties(given), user=caller.user)
    try:
        _use(caller, handle, given.get(_USE, ""))
    except TidemillError:
        caller.gateway.close_session(handle, user=caller.user)
        raise
    answer = found.TOpenSessionResp(status.good(), version, session_handle(SessionRef(handle, version)), {})
    return Answer(answer)


def close_session(caller: Caller, request: Any) -> Answer:
    caller.gateway.close_session(session_of(request.sessionHandle).session, user=caller.user)
    return Answer(structs().TCloseSessionResp(status.good()))


def info(caller: Caller, request: Any) -> Answer:
    found = structs()
    caller.gateway.heartbeat(session_of(request.sessionHandle).session, user=caller.user)
    if request.infoType in _LENGTHS:
        value = found.TGetInfoValue(lenValue=_LONGEST_NAME)
    elif request.infoType in _INFO:
        value = found.TGetInfoValue(stringValue=_INFO[request.infoType])
    else:
        raise NotSupportedError(f"Unrecognized GetInfoType value: {request.infoType}")
    return Answer(found.TGetInfoResp(status.good(), value))


def client_info(caller: Caller, request: Any) -> Answer:
    caller.gateway.heartbeat(session_of(request.sessionHandle).session, user=caller.user)
    return Answer(structs().TSetClientInfoResp(status.good()))


def no_token(caller: Caller, request: Any) -> Answer:
    raise NotSupportedError("Delegation tokens are Kerberos': this gateway has none.")


def _properties(given: Mapping[str, str]) -> dict[str, str]:
    """Variables and Hive's own settings, which its driver sends unasked, mean nothing here."""
    settings = (key.removeprefix(_SET) for key in given if key.startswith(_SET))
    named = {key.removeprefix(_CONF): given[_SET + key] for key in settings}
    return {key: value for key, value in named.items() if not key.startswith(_NOT_OURS)}


def _use(caller: Caller, session: str, database: str) -> None:
    """``default`` is Hive's name for the one that every catalog has."""
    catalog = caller.gateway.catalog(session, user=caller.user)
    if not database or (database == "default" and "default" not in catalog.databases(catalog.current[0])):
        return
    quoted = database.replace("`", "``")
    caller.gateway.configure_session(session, f"USE `{quoted}`", user=caller.user)
