"""What the gateway's service speaks of, whatever wire a client comes by.

Handles are UUIDs as text. A result is read by token: token 0 first, then what each page names as the next. A
page may be asked for again until its successor was asked for.
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
"""Whose protocol this is: clients look at it."""
LONGEST_TIMEOUT = 1_000_000_000.0
"""Seconds after which a statement is ended at the latest, whatever a client asks for."""
HANDLE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class OperationStatus(Enum):
    """Flink's, by its names."""

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
    """What a page is: rows (or none yet), the end, or that the statement still runs."""

    PAYLOAD = "PAYLOAD"
    EOS = "EOS"
    NOT_READY = "NOT_READY"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultInfo:
    """What is known of a result before its rows. ``zone``: in which TIMESTAMP_LTZ values are shown;
    ``changelog``: rows may have any kind; ``warnings``: what the user should hear that is no error."""

    fields: tuple[Field, ...]
    is_query: bool
    result_kind: str
    job_id: str = ""
    zone: dt.tzinfo = dt.UTC
    changelog: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """``rows``: carriers (``types.physical``), and the kinds where there may be others than +I.

    ``next_token`` is None at the end; ``info`` and ``rows`` are None while the statement runs."""

    type: ResultType
    info: ResultInfo | None = None
    rows: pa.Table | None = None
    next_token: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationInfo:
    """``error`` is there with status ERROR alone. ``statement``: as it may be shown, '' where an earlier
    process has run it. ``job_id``: of what it has started, '' where that is nothing. ``warnings``: what its
    user should hear that is no error."""

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
    """What a client asked of the gateway cannot be; the client must act."""

    code = "GATEWAY"


class UnknownSessionError(GatewayError):
    def __init__(self, handle: str) -> None:
        super().__init__(f"Session '{handle}' does not exist.")


class UnknownOperationError(GatewayError):
    def __init__(self, handle: str) -> None:
        super().__init__(f"Can not find the submitted operation in the OperationManager with the {handle}.")


class StatusError(GatewayError):
    """A step that the operation's status does not allow."""


class TokenError(GatewayError):
    def __init__(self, current: int, found: int) -> None:
        wanted = "0" if current == 0 else f"{current} or {current - 1}"
        super().__init__(f"Expecting token to be {wanted}, but found {found}.")


class LimitError(GatewayError):
    """There are as many as there may be."""
