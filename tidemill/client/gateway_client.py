"""A client of a gateway's REST protocol, Tidemill's or Flink's own, with Python's standard library alone:
pages in other formats than JSON are read by who asks for them (``decoders``).

One session a client; statements run one after the other. Not shared between threads, but for ``cancel``.
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
"""From the content of an answer to what a page of JSON would say; its ``data`` is the decoder's own."""
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
    """What the gateway answers instead of a result. ``cause``: the whole chain, with exceptions' names;
    ``code``: Tidemill's, where it is a gateway of Tidemill; the position is one in the statement."""

    def __init__(self, cause: str, code: str = "", position: Position | None = None) -> None:
        message = _first(cause) if code else _root(cause)
        super().__init__(message.replace(f" (at {position})", "", 1), position=position)
        self.cause = cause
        if code:
            self.code = code


class CanceledError(GatewayError):
    """The client has canceled the statement that it waits for, or whose rows it reads."""

    def __init__(self) -> None:
        super().__init__("The statement was canceled.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``operation``: its handle; ``columns``: name and type, as the protocol has them; ``pages``: each page's
    ``data``, as it comes; ``warnings``: what the gateway says besides, a gateway of Tidemill's."""

    operation: str
    columns: list[Json]
    pages: Iterator[Any]
    is_query: bool
    job_id: str = ""
    warnings: tuple[str, ...] = ()
    rows: Iterator[tuple[str, list[Any]]] = field(init=False)
    """Those of pages in JSON: kind and values, numbers with a point as Decimal."""

    def __post_init__(self) -> None:
        rows = ((row["kind"], row["fields"]) for page in self.pages for row in page)
        object.__setattr__(self, "rows", rows)


@dataclass(slots=True)
class GatewayClient:
    """``url``: ``http://HOST:PORT``, with ``user:password@`` or ``:token@`` where the gateway asks for it.
    ``decoders``: by media types that the client would rather have than JSON; a gateway that has none of them
    answers JSON."""

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
        """Its queries end; jobs that it has started go on."""
        if self._session:
            session, self._session = self._session, ""
            self._call("DELETE", f"/v2/sessions/{session}")

    def __enter__(self) -> Self:
        return self if self._session else self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, statement: str, *, row_format: str = "JSON") -> Answer:
        """Submits a statement and waits until its columns are there; ConnectorError with what is wrong."""
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
        """A statement that is canceled on its way to the gateway is ended when it is there."""
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
        found: dict[str, str] = self._call("GET", f"/v2/sessions/{self._session}")["properties"]
        return found

    def complete(self, statement: str, position: int) -> list[str]:
        """What may stand at ``position``."""
        body = {"statement": statement, "position": position}
        found: list[str] = self._call("GET", f"/v2/sessions/{self._session}/complete-statement", body)[
            "candidates"
        ]
        return found

    def history(self, job_id: str = "", *, last: int = 20) -> list[Json]:
        """The user's jobs that have ended, the youngest first, or the last run of one; it needs no session.
        GatewayError where there is none."""
        path = "/console/api/history"
        if job_id:
            return [self._call("GET", f"{path}/{quote(job_id, safe='')}")]
        found: list[Json] = self._call("GET", f"{path}?last={last}")["jobs"]
        return found

    def cancel(self, operation: str = "") -> None:
        """Ends a statement, the last one where none is named; one that has ended is fine. A thread that waits
        for it, or reads its rows, gets a CanceledError."""
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
        """To their end, with which the gateway need not keep them any more."""
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
    """What a page in another format than JSON says of itself, and of the next one."""
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
    said = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {said}"}


def _answer(status: int, headers: Mapping[str, str], text: str) -> Json:
    try:
        found = json.loads(text, parse_float=Decimal)
    except ValueError as e:
        raise ConnectorError(f"The server is not a gateway: {text[:200]}") from e
    if status == _GOOD and isinstance(found, dict):
        return found
    errors = found.get("errors") if isinstance(found, dict) else None
    said = str(errors[-1]) if errors else f"The gateway answers {status}: {text[:200]}"
    at = _POSITION.fullmatch(headers.get(_POSITION_HEADER, ""))
    position = Position(int(at[1]), int(at[2])) if at else None
    raise GatewayError(said, headers.get(_CODE_HEADER, ""), position)


def _root(text: str) -> str:
    """What is at the root of a chain of Java's exceptions, without its class."""
    return _message(text.rpartition(_CAUSE)[2])


def _first(text: str) -> str:
    """The first cause in such a chain, which tells most where Tidemill made it."""
    return _message(text.partition(_CAUSE)[2].partition(f"\n{_CAUSE}")[0] or text)


def _message(cause: str) -> str:
    said = cause.partition("\n\nEnd of exception")[0]
    name, colon, message = said.partition(": ")
    return message if colon and " " not in name else said
