"""Errors as Flink's REST endpoint gives them: ``{"errors": [...]}``.

What is wrong with a statement comes as two texts, the second with the names of Flink's exceptions: clients
look for them, and for ``Encountered "<EOF>"`` where a statement is not complete.
"""

from __future__ import annotations

from tidemill import errors as e
from tidemill.gateway.api import GatewayError

_PREFIX = "org.apache.flink.table."
_CHAINS: tuple[tuple[type[e.TidemillError], tuple[str, ...]], ...] = (
    (
        e.SqlSyntaxError,
        (
            f"{_PREFIX}api.SqlParserException: SQL parse failed. ",
            "org.apache.calcite.sql.parser.SqlParseException: ",
            "org.apache.flink.sql.parser.impl.ParseException: ",
        ),
    ),
    (e.ValidationError, (f"{_PREFIX}api.ValidationException: ",)),
    (e.NotSupportedError, ("java.lang.UnsupportedOperationException: ",)),
    (GatewayError, (f"{_PREFIX}gateway.service.utils.SqlExecutionException: ",)),
    (e.TidemillError, ("java.lang.RuntimeException: ",)),
)


_NO_NUMBER = "For input string:"


class HttpError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__(*messages)
        self.status = status
        self.messages = messages


def refused(error: e.TidemillError) -> HttpError:
    """A session or an operation that is not as the request takes it to be."""
    return HttpError(500, _causes(error)[-1])


def failed(error: e.TidemillError, doing: str) -> HttpError:
    """A statement, or the reading of its result; ``doing`` is what the request wanted."""
    outer = f"{_PREFIX}gateway.api.utils.SqlGatewayException: "
    lines = [f"{outer}{outer}Failed to {doing}."]
    lines += [f"Caused by: {cause}" for cause in _causes(error)]
    text = "\n".join(lines)
    return HttpError(
        500,
        "Internal server error.",
        f"<Exception on server side:\n{text}\n\nEnd of exception on server side>",
    )


def _causes(error: e.TidemillError) -> list[str]:
    names = next(names for kind, names in _CHAINS if isinstance(error, kind))
    if isinstance(error, e.ExecutionError) and _NO_NUMBER in str(error):
        names = (*names, "java.lang.NumberFormatException: ")
    return [f"{name}{error}" for name in names]
