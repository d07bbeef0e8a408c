"""A result as events: a reader of an endless one that has no rows for a while knows where to go on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tidemill.gateway.endpoints.rest.call import Call
from tidemill.gateway.endpoints.rest.events import changes
from tidemill.gateway.endpoints.rest.threads import Threads


def page(token: int, rows: list[Any]) -> str:
    return json.dumps(
        {"results": {"data": rows}, "nextResultUri": f"/v2/sessions/s/operations/o/result/{token}"}
    )


def told(seconds: str, *pages: list[Any]) -> tuple[list[str], list[int]]:
    """The blocks of one answer, and the tokens that were asked for; then there are no rows."""
    asked: list[int] = []

    def fetch(_: Any, call: Call) -> str:
        asked.append(call.token)
        return page(call.token + 1, pages[call.token] if call.token < len(pages) else [])

    async def read() -> str:
        call = Call(version=2, user="", parameters={"token": "0"}, query={"seconds": seconds}, body=b"")
        gateway: Any = None
        threads = Threads()
        return "".join([text async for text in changes(fetch, gateway, call, threads)])

    return asyncio.run(read()).strip().split("\n\n"), asked


def test_an_answer_without_rows_says_where_to_go_on() -> None:
    blocks, asked = told("1")
    assert blocks == [f"id: {token + 1}" for token in asked]
    assert asked == list(range(len(asked)))


def test_rows_are_events_and_what_is_empty_moves_on() -> None:
    (first, empty, last, *_), asked = told("1", [1], [], [2])
    assert first.startswith("event: page\nid: 1\ndata: ")
    assert (empty, asked[:3]) == ("id: 2", [0, 1, 2])
    assert last.startswith("event: page\nid: 3\n")
