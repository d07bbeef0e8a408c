"""Errors as Flink's REST endpoint gives them: ``{"errors": [...]}``.

What is wrong with a statement comes as two texts, the second with the names of Flink's exceptions.
"""

from __future__ import annotations

import json

from starlette.responses import Response

from tidemill import errors as e
from tidemill.gateway.endpoints.causes import PREFIX, causes

CODE_HEADER, POSITION_HEADER = "Tidemill-Error-Code", "Tidemill-Error-Position"
"""Beside the texts, for clients that know them: the error's code, and ``LINE:COLUMN`` in the statement."""


class HttpError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, *messages: str, cause: e.TidemillError | None = None) -> None:
        super().__init__(*messages)
        self.status = status
        self.messages = messages
        self.headers = {} if cause is None else _headers(cause)


def _headers(error: e.TidemillError) -> dict[str, str]:
    at = error.position
    return {CODE_HEADER: error.code, **({POSITION_HEADER: f"{at.line}:{at.column}"} if at else {})}


def refused(error: e.TidemillError) -> HttpError:
    """A session or an operation that is not as the request takes it to be."""
    return HttpError(500, causes(error)[-1], cause=error)


def failed(error: e.TidemillError, doing: str) -> HttpError:
    """A statement, or the reading of its result; ``doing`` is what the request wanted."""
    outer = f"{PREFIX}gateway.api.utils.SqlGatewayException: "
    lines = [f"{outer}{outer}Failed to {doing}."]
    lines += [f"Caused by: {cause}" for cause in causes(error)]
    text = "\n".join(lines)
    return HttpError(
        500,
        "Internal server error.",
        f"<Exception on server side:\n{text}\n\nEnd of exception on server side>",
        cause=error,
    )


def response(error: HttpError) -> Response:
    asked = {"WWW-Authenticate": 'Basic realm="SQL gateway", charset="UTF-8"'} if error.status == 401 else {}
    text = json.dumps({"errors": list(error.messages)}, ensure_ascii=False).encode("utf-8", "replace")
    headers = {**error.headers, **asked}
    return Response(text, error.status, headers=headers, media_type="application/json; charset=UTF-8")
