"""The requests of every statement, answered in the event loop: a thread has them only where there is much to
read or to free."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tidemill.gateway.endpoints.rest import handlers as h
from tidemill.gateway.endpoints.rest.call import Call
from tidemill.gateway.endpoints.rest.threads import Threads
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.status import Status

Soon = Callable[[Gateway, Call, Threads], Awaitable[str | h.Binary]]


async def execute_statement(gateway: Gateway, call: Call, threads: Threads) -> str | h.Binary:
    if len(call.body) > h.LONG_STATEMENT or gateway.audit.file:
        return await threads.run(h.execute_statement, gateway, call)
    return await h.executing(gateway, call)


async def fetch_results(gateway: Gateway, call: Call, threads: Threads) -> str | h.Binary:
    operation = h.operation_of(gateway, call)
    if await _ended(operation.status, h.EMPTY_WAIT) and not operation.is_light:
        return await threads.run(h.fetch_results, gateway, call)
    return h.fetch_what_is_there(gateway, call)


async def close_operation(gateway: Gateway, call: Call, threads: Threads) -> str | h.Binary:
    if h.is_light(gateway, call):
        return h.close_operation(gateway, call)
    return await threads.run(h.close_operation, gateway, call)


async def _ended(status: Status, seconds: float) -> bool:
    """Whether it has ended within so many seconds."""
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()

    def told() -> None:
        if not waiting.done():
            waiting.set_result(None)

    def tell() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(told)

    if status.listen(tell):
        patience = loop.call_later(seconds, told)
        try:
            await waiting
        finally:
            patience.cancel()
            status.listen_no_more(tell)
    return status.value.is_terminal
