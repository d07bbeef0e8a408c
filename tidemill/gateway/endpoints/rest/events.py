"""A result as server-sent events: a live changelog for browsers and small programs.

Each page with rows is an event ``page`` with the JSON that a request for its token gives; its id is the token
of the next one, from which a client that was cut off goes on (``Last-Event-ID``). The last event is ``end``,
or ``error`` with the texts of an error, and its ``position`` in the statement if that is known. While there
are no rows, an ``id`` without an event says from which token to go on: a page is counted though nothing is in
it.

Pages that are on their way when a client hangs up are lost to it, as the rows of an endless result are
given once. A client that wants to pause asks for a few ``seconds`` at a time: after the last page of each the
answer ends without an event, and goes on with the next request.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable

from tidemill.gateway.endpoints.rest.call import Call
from tidemill.gateway.endpoints.rest.errors import POSITION_HEADER, HttpError
from tidemill.gateway.endpoints.rest.handlers import Binary
from tidemill.gateway.endpoints.rest.threads import Threads
from tidemill.gateway.service.service import Gateway

EVENTS = "text/event-stream"
_TOKEN = re.compile(r"/result/(\d+)")
_PAUSE_SECONDS = 0.2


async def changes(
    fetch: Callable[[Gateway, Call], str | Binary], gateway: Gateway, call: Call, threads: Threads
) -> AsyncIterator[str]:
    """Ends with the result, or after the call's seconds; a client that goes ends it, too."""
    seconds = call.seconds
    begun = time.monotonic()
    while True:
        try:
            found = await threads.run(fetch, gateway, call)
            text = found if isinstance(found, str) else found.content.decode()
        except HttpError as e:
            at = e.headers.get(POSITION_HEADER, "")
            yield _event(
                "error", json.dumps({"errors": list(e.messages), **({"position": at} if at else {})})
            )
            return
        page = json.loads(text)
        uri = page.get("nextResultUri")
        if page.get("results", {}).get("data"):
            yield _event("page", text, _token(uri))
        elif uri is not None:
            yield f"id: {_token(uri)}\n\n"
            await asyncio.sleep(_PAUSE_SECONDS)
        if uri is None:
            yield _event("end", text)
            return
        if time.monotonic() - begun >= seconds:
            return
        call = call.at_token(_token(uri))


def _token(uri: str) -> str:
    found = _TOKEN.search(uri)
    assert found is not None
    return found.group(1)


def _event(name: str, data: str, identity: str = "") -> str:
    said = f"id: {identity}\n" if identity else ""
    return f"event: {name}\n{said}data: {data}\n\n"
