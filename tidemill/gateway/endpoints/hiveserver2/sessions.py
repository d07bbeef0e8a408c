"""Calls for sessions. A client opens a session with a protocol version, settings and an initial database."""

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
"""Info types for the longest names of columns, schemas and tables."""


def open_session(caller: Caller, request: Any) -> Answer:
    """Opens a session. Settings have keys as ``set:hiveconf:KEY``; other client properties are ignored."""
    thrift = structs()
    if caller.log_in is not None:
        caller.user = caller.log_in(request.username or "", request.password or "")
        caller.is_known = True
    configuration: Mapping[str, str] = request.configuration or {}
    version = min(max(request.client_protocol or 0, 0), NEWEST)
    handle = caller.gateway.open_session(_properties(configuration), user=caller.user)
    try:
        _use(caller, handle, configuration.get(_USE, ""))
    except TidemillError:
        caller.gateway.close_session(handle, user=caller.user)
        raise
    response = thrift.TOpenSessionResp(
        status.good(), version, session_handle(SessionRef(handle, version)), {}
    )
    return Answer(response)


def close_session(caller: Caller, request: Any) -> Answer:
    caller.gateway.close_session(session_of(request.sessionHandle).session, user=caller.user)
    return Answer(structs().TCloseSessionResp(status.good()))


def info(caller: Caller, request: Any) -> Answer:
    thrift = structs()
    caller.gateway.heartbeat(session_of(request.sessionHandle).session, user=caller.user)
    if request.infoType in _LENGTHS:
        value = thrift.TGetInfoValue(lenValue=_LONGEST_NAME)
    elif request.infoType in _INFO:
        value = thrift.TGetInfoValue(stringValue=_INFO[request.infoType])
    else:
        raise NotSupportedError(f"Unrecognized GetInfoType value: {request.infoType}")
    return Answer(thrift.TGetInfoResp(status.good(), value))


def client_info(caller: Caller, request: Any) -> Answer:
    caller.gateway.heartbeat(session_of(request.sessionHandle).session, user=caller.user)
    return Answer(structs().TSetClientInfoResp(status.good()))


def no_token(caller: Caller, request: Any) -> Answer:
    raise NotSupportedError("Delegation tokens are Kerberos': this gateway has none.")


def _properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """The session's properties. Skips variables and Hive's own settings, which its driver always sends."""
    settings = (key.removeprefix(_SET) for key in configuration if key.startswith(_SET))
    by_key = {key.removeprefix(_CONF): configuration[_SET + key] for key in settings}
    return {key: value for key, value in by_key.items() if not key.startswith(_NOT_OURS)}


def _use(caller: Caller, session: str, database: str) -> None:
    """Runs USE. Ignores ``default``, the database that every Hive catalog has, if the catalog lacks it."""
    catalog = caller.gateway.catalog(session, user=caller.user)
    if not database or (database == "default" and "default" not in catalog.databases(catalog.current[0])):
        return
    quoted = database.replace("`", "``")
    caller.gateway.configure_session(session, f"USE `{quoted}`", user=caller.user)
