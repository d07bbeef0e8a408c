"""Maps errors to Flink's exception texts: clients look for the names, and for ``Encountered "<EOF>"`` if a
statement is incomplete."""

from __future__ import annotations

from tidemill import errors as e
from tidemill.gateway.api import GatewayError
from tidemill.gateway.endpoints.root_causes import VALIDATION, exception_of

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
    (e.NotSupportedError, ("java.lang.UnsupportedOperationException: ",)),
    (GatewayError, (f"{PREFIX}gateway.service.utils.SqlExecutionException: ",)),
    (e.TidemillError, ("java.lang.RuntimeException: ",)),
)
_NO_NUMBER = "For input string:"


def causes(error: e.TidemillError) -> list[str]:
    """The chain of exceptions, outermost first, each with the error's text. For an invalid statement the
    innermost has only Flink's message; the outermost also has the position, the expected words and a hint."""
    if isinstance(error, e.ValidationError) or exception_of(error.message) != VALIDATION:
        whole, root = f"{VALIDATION}: {error}", f"{exception_of(error.message)}: {error.message}"
        return [whole] if whole == root else [whole, root]
    names = next(names for kind, names in _CHAINS if isinstance(error, kind))
    if isinstance(error, e.ExecutionError) and _NO_NUMBER in str(error):
        names = (*names, "java.lang.NumberFormatException: ")
    text = _parser_text(error) if isinstance(error, e.SqlSyntaxError) else str(error)
    return [f"{name}{text}" for name in names]


def _parser_text(error: e.SqlSyntaxError) -> str:
    """The error in Flink's parser format, which quotes expected words but not kinds of words."""
    parts = [error.message]
    if error.position is not None and str(error.position) not in error.message:
        parts[0] += f" (at {error.position})"
    if error.expected:
        parts.append(f"Was expecting{' one of' if len(error.expected) > 1 else ''}:")
        parts += [f"    {_ALONE.get(word, _word(word))}" for word in error.expected]
    return "\n".join([*parts, *([error.hint] if error.hint else [])])


_ALONE = {"<EOF>": "<EOF> "}


def _word(word: str) -> str:
    return f"{word} ..." if word[0] == "<" and word[-1] == ">" else f'"{word}" ...'
