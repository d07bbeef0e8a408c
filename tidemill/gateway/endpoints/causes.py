"""Maps errors to Flink's exception texts: clients look for the names, and for ``Encountered "<EOF>"`` if a
statement is incomplete."""

from __future__ import annotations

import re

from tidemill import errors as e
from tidemill.gateway.api import GatewayError

PREFIX = "org.apache.flink.table."
_CATALOG = f"{PREFIX}catalog.exceptions."
VALIDATION = f"{PREFIX}api.ValidationException"
_KINDS = "Database|Function|Model|Partition"
_SAYINGS: tuple[tuple[str, str], ...] = (
    (r"A (catalog|database) with name \[", f"{_CATALOG}CatalogException"),
    (r"Catalog \S+ (already exists|does not exist( in the catalog store)?)\.", f"{_CATALOG}CatalogException"),
    (r"Cannot drop a catalog which is currently in use", f"{_CATALOG}CatalogException"),
    (r"Table \(or view\) .* already exists in Catalog", f"{_CATALOG}TableAlreadyExistException"),
    (r"Table \(or view\) .* does not exist in Catalog", f"{_CATALOG}TableNotExistException"),
    (rf"({_KINDS}) .* already exists in Catalog", f"{_CATALOG}\\1AlreadyExistException"),
    (rf"({_KINDS}) .* does not exist in Catalog", f"{_CATALOG}\\1NotExistException"),
    (r"Database .* in catalog .* is not empty", f"{_CATALOG}DatabaseNotEmptyException"),
    (r"SHOW CREATE (TABLE|VIEW) is only supported for", f"{PREFIX}api.TableException"),
    (
        r"No match found for function signature|Object '.*' not found|Column '.*' (not found in|is ambiguous)"
        r"|Cannot apply '|Expression '.*' is not being grouped|WHERE clause must be a condition|"
        r"Unknown target column|Aggregate expression is illegal in",
        "org.apache.calcite.sql.validate.SqlValidatorException",
    ),
    (
        r"Only 'INSERT/CREATE TABLE AS' statement|No Statement Set to submit",
        f"{PREFIX}gateway.service.utils.SqlExecutionException",
    ),
    (r"No enum constant|only single statement supported", "java.lang.IllegalArgumentException"),
    (r"jar or artifact resource \[", "java.io.FileNotFoundException"),
)
_WAYS = [(re.compile(pattern, re.DOTALL), name) for pattern, name in _SAYINGS]
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


def exception_of(message: str) -> str:
    """The exception class that has such a message in Flink 2.3 or Calcite 1.36, because clients and tests
    written for Flink check the name. Other messages belong to ValidationException."""
    for pattern, name in _WAYS:
        match = pattern.match(message)
        if match is not None:
            return match.expand(name)
    return VALIDATION
