"""The types of the gateway's service, which are the same for all protocols.

Handles are UUIDs as text. A client reads a result by token: token 0 first, then the next token that each page
names. A page can be read again until the client has read the next page.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from tidemill.errors import TidemillError
from tidemill.types.logical import Field

PRODUCT, VERSION = "Apache Flink", "2.3.0"
"""The product and version that clients of Flink's protocol expect."""
LONGEST_TIMEOUT = 1_000_000_000.0
"""The longest timeout of a statement in seconds, whatever the client sets."""
HANDLE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class OperationStatus(Enum):
    """Flink's statuses of an operation."""

    INITIALIZED = "INITIALIZED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    CLOSED = "CLOSED"
    ERROR = "ERROR"
    TIMEDOUT = "TIMEOUT"

    @property
    def is_terminal(self) -> bool:
        return self not in (
            OperationStatus.INITIALIZED,
            OperationStatus.PENDING,
            OperationStatus.RUNNING,
        )


class ResultType(Enum):
    """The type of a page: rows (maybe none yet), the end, or not ready because the statement still runs."""

    PAYLOAD = "PAYLOAD"
    EOS = "EOS"
    NOT_READY = "NOT_READY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInfo:
    """The properties of a result that are known before its rows. ``zone``: for the texts of TIMESTAMP_LTZ
    values; ``changelog``: rows may have any kind; ``warnings``: for the user."""

    fields: tuple[Field, ...]
    is_query: bool
    result_kind: str
    job_id: str = ""
    zone: dt.tzinfo = dt.UTC
    changelog: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """``rows``: carriers (``types.physical``), with a column of kinds if there may be others than +I.

    ``next_token`` is None at the end; ``info`` and ``rows`` are None while the statement runs."""

    type: ResultType
    info: ResultInfo | None = None
    rows: pa.Table | None = None
    next_token: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationInfo:
    """``error`` is set only with status ERROR. ``statement``: its text with masked secrets, '' for operations
    of an earlier process. ``job_id``: the job that the statement started, '' for none. ``warnings``: for the
    user."""

    handle: str
    status: OperationStatus
    submitted: dt.datetime
    error: TidemillError | None = None
    statement: str = ""
    job_id: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    handle: str
    name: str
    user: str
    opened: dt.datetime
    last_used: dt.datetime
    operations: tuple[OperationInfo, ...] = field(default=())


class GatewayError(TidemillError):
    """A client's request is invalid; the client must act."""

    code = "GATEWAY"


class UnknownSessionError(GatewayError):
    def __init__(self, handle: str) -> None:
        super().__init__(f"Session '{handle}' does not exist.")


class UnknownOperationError(GatewayError):
    def __init__(self, handle: str) -> None:
        super().__init__(f"Can not find the submitted operation in the OperationManager with the {handle}.")


class StatusError(GatewayError):
    """The operation's status does not allow the request."""


class TokenError(GatewayError):
    def __init__(self, current: int, actual: int) -> None:
        expected = "0" if current == 0 else f"{current} or {current - 1}"
        super().__init__(f"Expecting token to be {expected}, but found {actual}.")


class LimitError(GatewayError):
    """A limit is reached."""
