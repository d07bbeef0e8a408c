"""The ASGI application: requests to calls, answers and errors to JSON.

Handlers run in threads, as many as may wait for rows at a time; reading a body never takes more memory than
the longest request that is allowed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable

from anyio import CapacityLimiter, move_on_after, to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tidemill.gateway.endpoints.rest.call import NEWEST, Call
from tidemill.gateway.endpoints.rest.console import HOME, Console, go_home
from tidemill.gateway.endpoints.rest.console_api import API, HANDLERS
from tidemill.gateway.endpoints.rest.door import Door
from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.endpoints.rest.events import EVENTS, changes
from tidemill.gateway.endpoints.rest.handlers import JSON, Binary
from tidemill.gateway.endpoints.rest.openapi import openapi
from tidemill.gateway.endpoints.rest.routes import ROUTES, RestRoute, versions_of
from tidemill.gateway.service.service import Gateway

_LOGGER = logging.getLogger("tidemill.gateway")
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_UNKEPT = {"Cache-Control": "no-store"}
_THREADS = 256
_BODY_SECONDS = 120
Answering = Callable[[Request], Awaitable[Response]]


def application(gateway: Gateway, longest: int, door: Door) -> Starlette:
    """``longest``: bytes of a request's body."""
    limiter = CapacityLimiter(_THREADS)
    routes = [
        Route(
            f"{prefix}{route.path}",
            _answering(route, version, gateway, longest, limiter, door),
            methods=[route.method],
        )
        for route in ROUTES
        for prefix, version in _prefixes(route)
    ]
    routes += [
        Route(f"{prefix}/openapi.json", _description(version), methods=["GET"])
        for prefix, version in [("", NEWEST), *((f"/v{n}", n) for n in range(1, NEWEST + 1))]
    ]
    routes += _console(gateway, longest, limiter, door)
    routes.append(Route("/metrics", _metrics(gateway, door), methods=["GET"]))
    routes.append(Route("/metrics.json", _metrics(gateway, door), methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, HttpError: _failed})


def _console(gateway: Gateway, longest: int, limiter: CapacityLimiter, door: Door) -> list[Route]:
    """Its files are anybody's, its data those of who asks."""
    files = Console.read()
    found = [
        Route(
            f"{API}{path}",
            _answering(RestRoute(method, path, handler), NEWEST, gateway, longest, limiter, door),
            methods=[method],
        )
        for (method, path), handler in HANDLERS.items()
    ]
    found.append(Route(f"{API}/pass", _pass(door), methods=["POST", "DELETE"]))
    found += [Route(f"{HOME}{{path:path}}", files.answer), Route("/console", go_home), Route("/", go_home)]
    return found


def _prefixes(route: RestRoute) -> list[tuple[str, int]]:
    """Without a version a request is one of the newest."""
    versions = versions_of(route)
    return [*([("", NEWEST)] if NEWEST in versions else []), *((f"/v{n}", n) for n in versions)]


def _answering(
    route: RestRoute, version: int, gateway: Gateway, longest: int, limiter: CapacityLimiter, door: Door
) -> Answering:
    async def answer(request: Request) -> Response:
        if streams and EVENTS in request.headers.get("accept", ""):
            return await stream(request)
        begun = time.monotonic()
        status = 500
        try:
            found = await read(request)
            status = 200
        except HttpError as e:
            status = e.status
            raise
        finally:
            gateway.metrics.request(route.handler.__name__, status, time.monotonic() - begun)
        if isinstance(found, Binary):
            return Response(found.content, media_type=found.media_type, headers=dict(found.headers))
        return Response(found, media_type=JSON)

    streams = "token" in route.path

    async def stream(request: Request) -> Response:
        user = await _user(door, request, limiter)
        last = request.headers.get("last-event-id", "")
        parameters = {**request.path_params, "token": last} if last else request.path_params
        call = Call(version=version, user=user, parameters=parameters, query=request.query_params, body=b"")
        _ = call.seconds  # refused before the answer begins
        return StreamingResponse(changes(route.handler, gateway, call, limiter), media_type=EVENTS)

    async def read(request: Request) -> str | Binary:
        user = await _user(door, request, limiter)
        call = Call(
            version=version,
            user=user,
            parameters=request.path_params,
            query=request.query_params,
            body=await _body(request, longest),
            accept=request.headers.get("accept", ""),
        )
        try:
            found: str | Binary = await to_thread.run_sync(route.handler, gateway, call, limiter=limiter)
            return found
        except HttpError:
            raise
        except Exception as e:
            _LOGGER.exception("a request failed in a way that it should not")
            raise HttpError(500, "Internal server error.", f"{type(e).__name__}: {e}") from e

    return answer


async def _user(door: Door, request: Request, limiter: CapacityLimiter) -> str:
    """Known before the body is read: who may not come in sends none."""
    if not door.asks:
        return door.user(request.headers)
    found: str = await to_thread.run_sync(door.user, request.headers, limiter=limiter)
    return found


def _pass(door: Door) -> Answering:
    """POST gives who says who he is a pass, which DELETE ends."""

    async def answer(request: Request) -> Response:
        user = await to_thread.run_sync(door.user, request.headers)
        passes = door.access.passes
        if request.method == "POST":
            return Response(json.dumps({"pass": passes.issue(user)}), media_type=JSON, headers=_UNKEPT)
        passes.revoke(request.headers.get("authorization", "").partition(" ")[2].strip())
        return Response("{}", media_type=JSON)

    return answer


def _metrics(gateway: Gateway, door: Door) -> Answering:
    async def answer(request: Request) -> Response:
        await to_thread.run_sync(door.user, request.headers)
        now = gateway.now()
        if request.url.path.endswith(".json"):
            return Response(json.dumps(gateway.metrics.as_json(now)), media_type=JSON)
        return Response(gateway.metrics.as_text(now), media_type=_PROMETHEUS)

    return answer


async def _body(request: Request, longest: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    with move_on_after(_BODY_SECONDS) as reading:
        try:
            async for part in request.stream():
                size += len(part)
                if size > longest:
                    key = "rest.server.max-content-length"
                    raise HttpError(413, f"The request is longer than {longest} bytes ('{key}').")
                parts.append(part)
        except ClientDisconnect:
            raise HttpError(400, "The client went away in the middle of its request.") from None
    if reading.cancelled_caught:
        raise HttpError(408, f"The request did not end within {_BODY_SECONDS} seconds.")
    return b"".join(parts)


def _description(version: int) -> Answering:
    async def answer(request: Request) -> Response:
        return Response(json.dumps(openapi(version)), media_type=JSON)

    return answer


async def _not_found(request: Request, error: Exception) -> Response:
    return _errors(404, f"Not found: {request.url.path}")


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    response = _errors(error.status, *error.messages)
    response.headers.update(error.headers)
    if error.status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="SQL gateway", charset="UTF-8"'
    return response


def _errors(status: int, *messages: str) -> Response:
    text = json.dumps({"errors": list(messages)}, ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), status_code=status, media_type=JSON)
