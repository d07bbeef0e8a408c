"""The ASGI application: requests to calls, answers and errors to JSON.

Requests of the protocol are found by their paths here, and answered without a framework; those that may wait
do so in threads, as many as may wait for rows at a time. What people and their programs look at now and then
(the console's files, metrics, the description) is Starlette's to find.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tidemill.config.gateway_options import METRICS_USERS
from tidemill.gateway.endpoints.rest.asgi import (
    Receive,
    Scope,
    Send,
    address_of,
    answer,
    body_of,
    failure,
    headers_of,
    query_of,
)
from tidemill.gateway.endpoints.rest.call import NEWEST, Call
from tidemill.gateway.endpoints.rest.console import HOME, Console, go_home
from tidemill.gateway.endpoints.rest.console_api import API, HANDLERS
from tidemill.gateway.endpoints.rest.door import Door
from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.endpoints.rest.events import EVENTS, changes
from tidemill.gateway.endpoints.rest.handlers import JSON, Binary
from tidemill.gateway.endpoints.rest.openapi import openapi
from tidemill.gateway.endpoints.rest.paths import Paths
from tidemill.gateway.endpoints.rest.routes import ROUTES, RestRoute, versions_of
from tidemill.gateway.endpoints.rest.threads import Threads
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.workers import Workers
from tidemill.session.history.job_metrics import TEXT_FORMAT

_LOGGER = logging.getLogger("tidemill.gateway")
_UNKEPT = {"Cache-Control": "no-store"}
_THREADS, _LEAST, _KEPT_SECONDS = 256, 4, 60.0
Answering = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """``longest``: bytes of a request's body."""

    gateway: Gateway
    longest: int
    door: Door
    threads: Threads = field(
        default_factory=lambda: Threads(
            Workers(least=_LEAST, most=_THREADS, keepalive=_KEPT_SECONDS, abreast=_THREADS)
        )
    )
    _paths: Paths[tuple[RestRoute, int]] = field(default_factory=Paths)
    _pages: Starlette = field(init=False)

    def __post_init__(self) -> None:
        for route in ROUTES:
            for prefix, version in _prefixes(route):
                self._paths.add(route.method, f"{prefix}{route.path}", (route, version))
        for (method, path), handler in HANDLERS.items():
            self._paths.add(method, f"{API}{path}", (RestRoute(method, path, handler), NEWEST))
        object.__setattr__(self, "_pages", _pages(self.gateway, self.threads, self.door))

    def close(self) -> None:
        self.threads.workers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._paths.find(scope["method"], scope["path"])
        if found is None:
            await self._pages(scope, receive, send)
            return
        (route, version), parameters = found
        headers = headers_of(scope)
        streams = "token" in parameters and EVENTS in headers.get("accept", "")
        begun = time.monotonic()
        status = 200
        try:
            user = await _user(self.door, self.threads, headers, address_of(scope))
            call = Call(
                version=version,
                user=user,
                parameters=parameters,
                query=query_of(scope),
                body=b"" if streams else await body_of(scope, headers, receive, self.longest),
                accept=headers.get("accept", ""),
            )
            if streams:
                await self._stream(route, _continued(call, headers))(scope, receive, send)
                return
            made = await self._made(route, call)
        except HttpError as e:
            status = e.status
            content, more = failure(e)
            if "expect" in headers:  # whether its body comes now, nobody knows
                more["connection"] = "close"
            await answer(send, content, JSON, status=status, headers=more)
        else:
            await answer(send, made.content, made.media_type, headers=made.headers)
        if not streams:
            self.gateway.metrics.request(route.handler.__name__, status, time.monotonic() - begun)

    async def _made(self, route: RestRoute, call: Call) -> Binary:
        try:
            if route.soon is not None:
                found = await route.soon(self.gateway, call, self.threads)
            elif route.waits:
                found = await self.threads.run(route.handler, self.gateway, call)
            else:
                found = route.handler(self.gateway, call)
            return found if isinstance(found, Binary) else Binary(found.encode(), JSON, {})
        except HttpError:
            raise
        except Exception as e:
            _LOGGER.exception("a request failed in a way that it should not")
            raise HttpError(500, "Internal server error.", f"{type(e).__name__}: {e}") from e

    def _stream(self, route: RestRoute, call: Call) -> StreamingResponse:
        _ = call.seconds  # refused before the answer begins
        return StreamingResponse(changes(route.handler, self.gateway, call, self.threads), media_type=EVENTS)


def _prefixes(route: RestRoute) -> list[tuple[str, int]]:
    """Without a version a request is one of the newest."""
    versions = versions_of(route)
    return [*([("", NEWEST)] if NEWEST in versions else []), *((f"/v{n}", n) for n in versions)]


def _continued(call: Call, headers: dict[str, str]) -> Call:
    """A client that was cut off says what it got last."""
    last = headers.get("last-event-id", "")
    return call.at_token(last) if last else call


async def _user(door: Door, threads: Threads, headers: Mapping[str, str], address: str) -> str:
    """Known before the body is read: who may not come in sends none."""
    return await threads.run(door.user, headers, address) if door.asks else door.user(headers, address)


def _pages(gateway: Gateway, threads: Threads, door: Door) -> Starlette:
    """The console's files are anybody's, its data those of who asks."""
    files = Console.read()
    routes = [
        Route(f"{prefix}/openapi.json", _description(version), methods=["GET"])
        for prefix, version in [("", NEWEST), *((f"/v{n}", n) for n in range(1, NEWEST + 1))]
    ]
    routes += [Route(path, _metrics(gateway, threads, door)) for path in ("/metrics", "/metrics.json")]
    routes.append(Route(f"{API}/pass", _pass(threads, door), methods=["POST", "DELETE"]))
    routes += [Route(f"{HOME}{{path:path}}", files.answer), Route("/console", go_home), Route("/", go_home)]
    return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, HttpError: _failed})


def _pass(threads: Threads, door: Door) -> Answering:
    """POST gives who says who he is a pass, which DELETE ends."""

    async def respond(request: Request) -> Response:
        user = await _user(door, threads, request.headers, address_of(request.scope))
        passes = door.access.passes
        if request.method == "POST":
            return Response(json.dumps({"pass": passes.issue(user)}), media_type=JSON, headers=_UNKEPT)
        passes.revoke(request.headers.get("authorization", "").partition(" ")[2].strip())
        return Response("{}", media_type=JSON)

    return respond


def _metrics(gateway: Gateway, threads: Threads, door: Door) -> Answering:
    """Of jobs, who has to say who he is sees his own, but for the users who watch all."""
    watching = {name.strip() for name in gateway.config.read(METRICS_USERS).split(",")} - {""}

    async def respond(request: Request) -> Response:
        user = await _user(door, threads, request.headers, address_of(request.scope))
        now, whose = gateway.now(), user if door.asks and user not in watching else None
        if request.url.path.endswith(".json"):
            return Response(json.dumps(gateway.metrics.as_json(now, whose)), media_type=JSON)
        return Response(gateway.metrics.as_text(now, whose), media_type=TEXT_FORMAT)

    return respond


def _description(version: int) -> Answering:
    async def respond(request: Request) -> Response:
        return Response(json.dumps(openapi(version)), media_type=JSON)

    return respond


async def _not_found(request: Request, error: Exception) -> Response:
    return _response(HttpError(404, f"Not found: {request.url.path}"))


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return _response(error)


def _response(error: HttpError) -> Response:
    content, headers = failure(error)
    return Response(content, status_code=error.status, media_type=JSON, headers=headers)
