"""A client of a gateway's REST protocol, Tidemill's or Flink's own, which needs only Python's standard
library.

A caller that wants pages in other formats than JSON passes ``decoders``. A client has one session; its
statements run one after the other. Only ``cancel`` may be called from another thread.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self
from urllib.parse import quote, urlsplit

from tidemill.errors import ConnectorError, Position, ValidationError

Json = dict[str, Any]
Decoder = Callable[[bytes], Json]
"""Converts the content of an answer to the form of a JSON page; its ``data`` may have any type."""
_JSON = "application/json"
_TIMEOUT = 300.0
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.5
_CAUSE = "Caused by: "
_GOOD = 200


_RESULT_TYPE_HEADER, _NEXT_HEADER = "x-result-type", "x-next-result-uri"
_CODE_HEADER, _POSITION_HEADER = "tidemill-error-code", "tidemill-error-position"
_WARNINGS_HEADER = "tidemill-warnings"
_POSITION = re.compile(r"(\d{1,9}):(\d{1,9})")


class GatewayError(ConnectorError):
    """An error that the gateway answers. ``cause``: the whole chain, with the names of exceptions; ``code``:
    the error's code, if the gateway is Tidemill's; ``position``: in the statement."""

    def __init__(self, cause: str, code: str = "", position: Position | None = None) -> None:
        message = _first(cause) if code else _root(cause)
        super().__init__(message.replace(f" (at {position})", "", 1), position=position)
        self.cause = cause
        if code:
            self.code = code


class CanceledError(GatewayError):
    """The client has canceled the statement that it is waiting for, or reading from."""

    def __init__(self) -> None:
        super().__init__("The statement was canceled.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``operation``: its handle; ``columns``: names and types in the protocol's form; ``pages``: the ``data``
    of each page, as it arrives; ``warnings``: of a Tidemill gateway."""

    operation: str
    columns: list[Json]
    pages: Iterator[Any]
    is_query: bool
    job_id: str = ""
    warnings: tuple[str, ...] = ()
    rows: Iterator[tuple[str, list[Any]]] = field(init=False)
    """The rows of JSON pages: kind and values; numbers with a point are Decimal."""

    def __post_init__(self) -> None:
        rows = ((row["kind"], row["fields"]) for page in self.pages for row in page)
        object.__setattr__(self, "rows", rows)


@dataclass(slots=True)
class GatewayClient:
    """``url``: ``http://HOST:PORT``, with ``user:password@`` or ``:token@`` if the gateway needs it.
    ``decoders``: by media types that the client prefers to JSON; a gateway that has none of them answers
    JSON."""

    url: str
    decoders: Mapping[str, Decoder] = field(default_factory=dict)
    _session: str = ""
    _headers: dict[str, str] = field(default_factory=dict)
    _operation: str = ""
    """The last one that was submitted."""
    _open: set[str] = field(default_factory=set)
    _canceled: set[str] = field(default_factory=set)
    _submitting: bool = False
    _ends_at_once: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _warnings: tuple[str, ...] = ()
    """Of the last answer."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValidationError(
                f"'{parts.scheme}://{parts.hostname}' is not an address such as http://127.0.0.1:8083"
            )
        self._headers = {"Content-Type": "application/json", **_authorization(parts.username, parts.password)}

    def open(self, properties: Mapping[str, str] | None = None, *, name: str = "") -> Self:
        body = {"sessionName": name, "properties": dict(properties or {})}
        self._session = self._call("POST", "/v2/sessions", body)["sessionHandle"]
        return self

    def close(self) -> None:
        """Closes the session. Its queries end; jobs of its INSERTs continue."""
        if self._session:
            session, self._session = self._session, ""
            self._call("DELETE", f"/v2/sessions/{session}")

    def __enter__(self) -> Self:
        return self if self._session else self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, statement: str, *, row_format: str = "JSON") -> Answer:
        """Submits a statement and waits for its columns. ConnectorError if the statement fails."""
        base = f"/v2/sessions/{self._session}"
        operation = self._submitted(f"{base}/statements", statement)
        page = self._ready(f"{base}/operations/{operation}/result/0?rowFormat={row_format}", operation)
        return Answer(
            operation=operation,
            columns=page["results"]["columns"],
            pages=self._pages(page, operation),
            is_query=page["isQueryResult"],
            job_id=page.get("jobID", ""),
            warnings=self._warnings,
        )

    def _submitted(self, path: str, statement: str) -> str:
        """Submits a statement. If it is canceled before the gateway answers, it is canceled after the
        answer."""
        with self._lock:
            self._submitting, self._ends_at_once = True, False
        try:
            operation: str = self._call("POST", path, {"statement": statement})["operationHandle"]
        except BaseException:
            self._submitting = False
            raise
        with self._lock:
            self._submitting, self._operation = False, operation
            self._open.add(operation)
            ends = self._ends_at_once
        if ends:
            self.cancel(operation)
        return operation

    def properties(self) -> dict[str, str]:
        """The session's options."""
        options: dict[str, str] = self._call("GET", f"/v2/sessions/{self._session}")["properties"]
        return options

    def complete(self, statement: str, position: int) -> list[str]:
        """Completions for ``position``."""
        body = {"statement": statement, "position": position}
        candidates: list[str] = self._call("GET", f"/v2/sessions/{self._session}/complete-statement", body)[
            "candidates"
        ]
        return candidates

    def history(self, job_id: str = "", *, last: int = 20) -> list[Json]:
        """The user's ended jobs, newest first, or the last run of the job ``job_id``. It needs no session.
        GatewayError if there is no such job."""
        path = "/console/api/history"
        if job_id:
            return [self._call("GET", f"{path}/{quote(job_id, safe='')}")]
        jobs: list[Json] = self._call("GET", f"{path}?last={last}")["jobs"]
        return jobs

    def cancel(self, operation: str = "") -> None:
        """Cancels a statement, by default the last one. It is no error if the statement has ended. A thread
        that waits for the statement, or reads its rows, gets a CanceledError."""
        with self._lock:
            self._ends_at_once = self._submitting and not operation
            if self._ends_at_once:
                return
        named = operation or self._operation
        if named in self._open:
            self._canceled.add(named)
            self._close(named)

    def _close(self, operation: str) -> None:
        self._open.discard(operation)
        self._call("DELETE", f"/v2/sessions/{self._session}/operations/{operation}/close")

    def _pages(self, page: Json, operation: str) -> Iterator[Any]:
        """All pages; closes the operation at the end, so that the gateway can free the result."""
        while True:
            yield page["results"]["data"]
            if page["resultType"] == "EOS":
                return self._close(operation)
            page = self._ready(page["nextResultUri"], operation)

    def _ready(self, uri: str, operation: str) -> Json:
        wait = _FIRST_WAIT
        while True:
            if operation in self._canceled:
                raise CanceledError
            try:
                page = self._call("GET", uri)
            except GatewayError as e:
                if operation in self._canceled:
                    raise CanceledError from e
                raise
            if page["resultType"] != "NOT_READY":
                return page
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        parts = urlsplit(self.url)
        connection = _connection(parts.scheme, parts.hostname or "", parts.port)
        accepted = {"Accept": ", ".join([*self.decoders, _JSON])}
        try:
            connection.request(method, path, json.dumps(body or {}), {**self._headers, **accepted})
            answer = connection.getresponse()
            status, headers = answer.status, {k.lower(): v for k, v in answer.headers.items()}
            content = answer.read()
        except (OSError, http.client.HTTPException) as e:
            raise ConnectorError(f"The gateway {parts.hostname}:{parts.port} does not answer: {e}") from e
        finally:
            connection.close()
        self._warnings = tuple(json.loads(headers.get(_WARNINGS_HEADER, "[]")))
        decoder = self.decoders.get(headers.get("content-type", ""))
        if status == _GOOD and decoder is not None:
            return decoder(content) | _place(headers)
        return _answer(status, headers, content.decode("utf-8", "replace"))


def _place(headers: Mapping[str, str]) -> Json:
    """The result type and the next page's URI, which a page in another format than JSON has in its
    headers."""
    return {"resultType": headers[_RESULT_TYPE_HEADER], "nextResultUri": headers.get(_NEXT_HEADER)}


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=_TIMEOUT)


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if not password:
        return {}
    if not user:
        return {"Authorization": f"Bearer {password}"}
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {encoded}"}


def _answer(status: int, headers: Mapping[str, str], text: str) -> Json:
    try:
        document = json.loads(text, parse_float=Decimal)
    except ValueError as e:
        raise ConnectorError(f"The server is not a gateway: {text[:200]}") from e
    if status == _GOOD and isinstance(document, dict):
        return document
    errors = document.get("errors") if isinstance(document, dict) else None
    message = str(errors[-1]) if errors else f"The gateway answers {status}: {text[:200]}"
    at = _POSITION.fullmatch(headers.get(_POSITION_HEADER, ""))
    position = Position(int(at[1]), int(at[2])) if at else None
    raise GatewayError(message, headers.get(_CODE_HEADER, ""), position)


def _root(text: str) -> str:
    """The message of the root cause in a chain of Java exceptions, without its class."""
    return _message(text.rpartition(_CAUSE)[2])


def _first(text: str) -> str:
    """The message of the first cause in such a chain, which is the most informative one of Tidemill."""
    return _message(text.partition(_CAUSE)[2].partition(f"\n{_CAUSE}")[0] or text)


def _message(cause: str) -> str:
    text = cause.partition("\n\nEnd of exception")[0]
    name, colon, message = text.partition(": ")
    return message if colon and " " not in name else text
