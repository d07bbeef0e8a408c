"""Finds Flink's exception class for a message, because clients and tests written for Flink check the name.

The class names are those of Flink 2.3 and Calcite 1.36. Other messages belong to ValidationException.
"""

from __future__ import annotations

import re

_FLINK = "org.apache.flink.table."
_CATALOG = f"{_FLINK}catalog.exceptions."
VALIDATION = f"{_FLINK}api.ValidationException"
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
    (r"SHOW CREATE (TABLE|VIEW) is only supported for", f"{_FLINK}api.TableException"),
    (
        r"No match found for function signature|Object '.*' not found|Column '.*' (not found in|is ambiguous)"
        r"|Cannot apply '|Expression '.*' is not being grouped|WHERE clause must be a condition|"
        r"Unknown target column|Aggregate expression is illegal in",
        "org.apache.calcite.sql.validate.SqlValidatorException",
    ),
    (
        r"Only 'INSERT/CREATE TABLE AS' statement|No Statement Set to submit",
        f"{_FLINK}gateway.service.utils.SqlExecutionException",
    ),
    (r"No enum constant|only single statement supported", "java.lang.IllegalArgumentException"),
    (r"jar or artifact resource \[", "java.io.FileNotFoundException"),
)
_WAYS = [(re.compile(pattern, re.DOTALL), name) for pattern, name in _SAYINGS]


def exception_of(message: str) -> str:
    """The exception class that has such a message in Flink."""
    for pattern, name in _WAYS:
        match = pattern.match(message)
        if match is not None:
            return match.expand(name)
    return VALIDATION
