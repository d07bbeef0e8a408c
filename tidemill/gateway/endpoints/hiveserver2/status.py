"""What a response says first: that all is well, or what is not, with an SQLSTATE."""

from __future__ import annotations

from typing import Any

from tidemill import errors as e
from tidemill.gateway.api import GatewayError, LimitError, UnknownOperationError, UnknownSessionError
from tidemill.gateway.endpoints.causes import causes
from tidemill.gateway.endpoints.hiveserver2.handles import HandleError
from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.gateway.security.access import AccessError

_HANDLES = (UnknownSessionError, UnknownOperationError, HandleError)
_STATES: tuple[tuple[type[e.TidemillError], str], ...] = (
    (e.SqlSyntaxError, "42000"),
    (e.ValidationError, "42000"),
    (e.NotSupportedError, "0A000"),
    (e.NotPermittedError, "42501"),
    (e.ExecutionError, "22000"),
    (AccessError, "28000"),
    (LimitError, "53000"),
    (GatewayError, "HY000"),
)
_OTHER = "HY000"
_ERROR_CODE = 1
"""Hive has a number for each of its own errors; these are none of them."""


def good() -> Any:
    found = structs()
    return found.TStatus(found.TStatusCode.SUCCESS_STATUS)


def failed(error: e.TidemillError) -> Any:
    codes = structs().TStatusCode
    code = codes.INVALID_HANDLE_STATUS if isinstance(error, _HANDLES) else codes.ERROR_STATUS
    return structs().TStatus(code, None, sql_state(error), _ERROR_CODE, message(error))


def sql_state(error: e.TidemillError) -> str:
    return next((state for kind, state in _STATES if isinstance(error, kind)), _OTHER)


def message(error: e.TidemillError) -> str:
    return "\nCaused by: ".join(causes(error))
