"""Requests and answers as ASGI has them, with nothing of a framework between: a light statement is four
requests, and most of what it takes was theirs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.endpoints.rest.patience import WHOLE_BODY

_BODY_SECONDS = 120
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def headers_of(scope: Scope) -> dict[str, str]:
    """By their names in lower case, of each the first."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def address_of(scope: Scope) -> str:
    """Where the request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def query_of(scope: Scope) -> dict[str, str]:
    query = scope["query_string"]
    return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}


async def body_of(scope: Scope, headers: Mapping[str, str], receive: Receive, longest: int) -> bytes:
    """Reading it never takes more memory than ``longest`` and a part; HttpError where it does not come, or
    is longer."""
    whole: bytes | None = scope.get(WHOLE_BODY)
    if whole is not None and len(whole) <= longest:
        return whole
    said = headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > longest:
        raise _too_long(longest)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise HttpError(400, "The client went away in the middle of its request.")
                parts.append(message["body"])
                size += len(parts[-1])
                if size > longest:
                    raise _too_long(longest)
                if not message["more_body"]:
                    return b"".join(parts)
    except TimeoutError:
        raise HttpError(408, f"The request did not end within {_BODY_SECONDS} seconds.") from None


def _too_long(longest: int) -> HttpError:
    key = "rest.server.max-content-length"
    return HttpError(413, f"The request is longer than {longest} bytes ('{key}').")


async def answer(
    send: Send,
    content: bytes,
    media_type: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    given = {"content-length": str(len(content)), "content-type": media_type, **(headers or {})}
    written = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": written})
    await send({"type": "http.response.body", "body": content})


def failure(error: HttpError) -> tuple[bytes, dict[str, str]]:
    """An error's content and headers."""
    asked = {"WWW-Authenticate": 'Basic realm="SQL gateway", charset="UTF-8"'} if error.status == 401 else {}
    text = json.dumps({"errors": list(error.messages)}, ensure_ascii=False)
    return text.encode("utf-8", "replace"), {**error.headers, **asked}
