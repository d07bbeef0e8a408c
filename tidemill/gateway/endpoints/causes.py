"""Errors under the names of Flink's exceptions: clients look for them, and for ``Encountered "<EOF>"`` where
a statement is not complete."""

from __future__ import annotations

from tidemill import errors as e
from tidemill.gateway.api import GatewayError

PREFIX = "org.apache.flink.table."
_CHAINS: tuple[tuple[type[e.TidemillError], tuple[str, ...]], ...] = (
    (
        e.SqlSyntaxError,
        (
            f"{PREFIX}api.SqlParserException: SQL parse failed. ",
            "org.apache.calcite.sql.parser.SqlParseException: ",
            "org.apache.flink.sql.parser.impl.ParseException: ",
        ),
    ),
    (e.ValidationError, (f"{PREFIX}api.ValidationException: ",)),
    (e.NotSupportedError, ("java.lang.UnsupportedOperationException: ",)),
    (GatewayError, (f"{PREFIX}gateway.service.utils.SqlExecutionException: ",)),
    (e.TidemillError, ("java.lang.RuntimeException: ",)),
)
_NO_NUMBER = "For input string:"


def causes(error: e.TidemillError) -> list[str]:
    """From the outermost to the innermost, each with the error's text."""
    names = next(names for kind, names in _CHAINS if isinstance(error, kind))
    if isinstance(error, e.ExecutionError) and _NO_NUMBER in str(error):
        names = (*names, "java.lang.NumberFormatException: ")
    return [f"{name}{error}" for name in names]
