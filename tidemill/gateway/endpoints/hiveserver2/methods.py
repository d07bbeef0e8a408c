"""Which function answers which method of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidemill.gateway.endpoints.hiveserver2 import sessions, statements
from tidemill.gateway.endpoints.hiveserver2.caller import Caller
from tidemill.gateway.endpoints.hiveserver2.metadata import QUERIES, metadata_method
from tidemill.gateway.endpoints.hiveserver2.wire import Answer

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
