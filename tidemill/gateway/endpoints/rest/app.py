"""The ASGI application: turns requests into calls, and answers and errors into JSON.

Starlette routes the requests of the protocol and of the console, and those for the console's files, metrics
and the API description. Requests that may wait run in ``Threads``.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from tidemill.config.gateway_options import MAX_REQUEST, METRICS_USERS
from tidemill.gateway.endpoints.http_server import body_of
from tidemill.gateway.endpoints.rest.authentication import Authentication
from tidemill.gateway.endpoints.rest.call import NEWEST, Call
from tidemill.gateway.endpoints.rest.console import HOME, Console, go_home
from tidemill.gateway.endpoints.rest.console_api import API, HANDLERS
from tidemill.gateway.endpoints.rest.errors import HttpError, response
from tidemill.gateway.endpoints.rest.events import EVENTS, changes
from tidemill.gateway.endpoints.rest.handlers import JSON, Binary
from tidemill.gateway.endpoints.rest.openapi import openapi
from tidemill.gateway.endpoints.rest.routes import ROUTES, RestRoute, versions_of
from tidemill.gateway.endpoints.rest.threads import Threads
from tidemill.gateway.service.service import Gateway
from tidemill.session.history.job_metrics import TEXT_FORMAT

_LOGGER = logging.getLogger("tidemill.gateway")
_UNKEPT = {"Cache-Control": "no-store"}
Answering = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """``longest``: bytes of a request's body."""

    gateway: Gateway
    longest: int
    authentication: Authentication
    threads: Threads = field(default_factory=Threads)
    _app: Starlette = field(init=False)

    def __post_init__(self) -> None:
        api = [RestRoute(method, path, handler) for (method, path), handler in HANDLERS.items()]
        passes = Route("/pass", _pass(self.threads, self.authentication), methods=["POST", "DELETE"])
        routes: list[BaseRoute] = [
            *(Mount(f"/v{n}", routes=self._of_version(n)) for n in range(1, NEWEST + 1)),
            Mount(API, routes=[*(self._route(route, NEWEST) for route in _named_first(api)), passes]),
            *_pages(self.gateway, self.threads, self.authentication),
            *self._of_version(NEWEST),
        ]
        handlers = {404: _not_found, 405: _not_found, HttpError: _failed}
        object.__setattr__(self, "_app", Starlette(routes=routes, exception_handlers=handlers))

    def close(self) -> None:
        self.threads.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ignores a slash at the end of a path, except of the console's."""
        path = scope["path"]
        if path.endswith("/") and path != HOME:
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)

    def _of_version(self, version: int) -> list[Route]:
        """The routes of a version. A path without a version has the newest."""
        routes = [route for route in ROUTES if version in versions_of(route)]
        description = Route("/openapi.json", _description(version), methods=["GET"])
        return [*(self._route(route, version) for route in _named_first(routes)), description]

    def _route(self, route: RestRoute, version: int) -> Route:
        async def respond(request: Request) -> Response:
            begun = time.monotonic()
            status = 200
            try:
                answer = await self._response(route, version, request)
            except HTTPException as e:
                answer, status = _refusal(request, HttpError(e.status_code, e.detail)), e.status_code
            except HttpError as e:
                answer, status = _refusal(request, e), e.status
            if not isinstance(answer, StreamingResponse):
                self.gateway.metrics.request(route.handler.__name__, status, time.monotonic() - begun)
            return answer

        return Route(route.path, respond, methods=[route.method])

    async def _response(self, route: RestRoute, version: int, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        streams = "token" in request.path_params and EVENTS in accept
        call = Call(
            version=version,
            user=await _user(self.authentication, self.threads, request),
            parameters=request.path_params,
            query=request.query_params,
            body=b"" if streams else await body_of(request, self.longest, MAX_REQUEST.key),
            accept=accept,
        )
        if streams:
            return self._stream(route, _continued(call, request.headers))
        made = await self._made(route, call)
        return Response(made.content, headers=made.headers, media_type=made.media_type)

    async def _made(self, route: RestRoute, call: Call) -> Binary:
        try:
            if route.soon is not None:
                answer = await route.soon(self.gateway, call, self.threads)
            elif route.waits:
                answer = await self.threads.run(route.handler, self.gateway, call)
            else:
                answer = route.handler(self.gateway, call)
            return answer if isinstance(answer, Binary) else Binary(answer.encode(), JSON, {})
        except HttpError:
            raise
        except Exception as e:
            _LOGGER.exception("a request failed in a way that it should not")
            raise HttpError(500, "Internal server error.", f"{type(e).__name__}: {e}") from e

    def _stream(self, route: RestRoute, call: Call) -> StreamingResponse:
        _ = call.seconds  # refused before the answer begins
        return StreamingResponse(changes(route.handler, self.gateway, call, self.threads), media_type=EVENTS)


def _named_first(routes: list[RestRoute]) -> list[RestRoute]:
    """Routes with fixed path steps before those with parameters: ``{`` sorts behind all letters."""
    return sorted(routes, key=lambda route: route.path)


def _continued(call: Call, headers: Mapping[str, str]) -> Call:
    """A client that reconnects sends the id of the last event that it received."""
    last = headers.get("last-event-id", "")
    return call.at_token(last) if last else call


async def _user(authentication: Authentication, threads: Threads, request: Request) -> str:
    """The request's user. Called before the body is read, so that a refused client sends none."""
    headers, address = request.headers, request.client.host if request.client else ""
    return (
        await threads.run(authentication.user, headers, address)
        if authentication.asks
        else authentication.user(headers, address)
    )


def _pages(gateway: Gateway, threads: Threads, authentication: Authentication) -> list[Route]:
    """The console's files are public; its data need a user."""
    files = Console.read()
    routes = [
        Route(path, _metrics(gateway, threads, authentication)) for path in ("/metrics", "/metrics.json")
    ]
    routes += [Route(f"{HOME}{{path:path}}", files.answer), Route("/console", go_home), Route("/", go_home)]
    return routes


def _pass(threads: Threads, authentication: Authentication) -> Answering:
    """POST creates a pass for an authenticated user, DELETE revokes it."""

    async def respond(request: Request) -> Response:
        user = await _user(authentication, threads, request)
        passes = authentication.access.passes
        if request.method == "POST":
            return Response(json.dumps({"pass": passes.issue(user)}), media_type=JSON, headers=_UNKEPT)
        passes.revoke(request.headers.get("authorization", "").partition(" ")[2].strip())
        return Response("{}", media_type=JSON)

    return respond


def _metrics(gateway: Gateway, threads: Threads, authentication: Authentication) -> Answering:
    """Serves metrics. With authentication a user sees only his jobs, except users who may see all."""
    watching = {name.strip() for name in gateway.config.read(METRICS_USERS).split(",")} - {""}

    async def respond(request: Request) -> Response:
        user = await _user(authentication, threads, request)
        now, whose = gateway.now(), user if authentication.asks and user not in watching else None
        if request.url.path.endswith(".json"):
            return Response(json.dumps(gateway.metrics.as_json(now, whose)), media_type=JSON)
        return Response(gateway.metrics.as_text(now, whose), media_type=TEXT_FORMAT)

    return respond


def _description(version: int) -> Answering:
    async def respond(request: Request) -> Response:
        return Response(json.dumps(openapi(version)), media_type=JSON)

    return respond


async def _not_found(request: Request, error: Exception) -> Response:
    return _refusal(request, HttpError(404, f"Not found: {request.url.path}"))


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return _refusal(request, error)


def _refusal(request: Request, error: HttpError) -> Response:
    answer = response(error)
    if "expect" in request.headers:  # the client may send its body or not
        answer.headers["connection"] = "close"
    return answer
