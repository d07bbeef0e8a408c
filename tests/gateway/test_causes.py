"""Errors as chains of Flink's exceptions: its clients show the innermost, ours the outermost."""

from __future__ import annotations

import pytest

from tidemill.client.gateway_client import GatewayError
from tidemill.errors import NotSupportedError, Position, TidemillError, ValidationError
from tidemill.gateway.endpoints.causes import causes, exception_of
from tidemill.gateway.endpoints.rest.errors import failed


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("A catalog with name [x] does not exist.", "CatalogException"),
        ("Catalog x does not exist.", "CatalogException"),
        ("Catalog x does not exist", "ValidationException"),
        ("Cannot drop a catalog which is currently in use.", "CatalogException"),
        ("Cannot drop a database which is currently in use.", "ValidationException"),
        ("Table (or view) d.t already exists in Catalog c.", "TableAlreadyExistException"),
        ("Table (or view) d.t does not exist in Catalog c.", "TableNotExistException"),
        ("Function d.f does not exist in Catalog c.", "FunctionNotExistException"),
        ("Function d.f already exists in Catalog c.", "FunctionAlreadyExistException"),
        ("Object 'x' not found", "SqlValidatorException"),
        ("Column 'x' not found in any table", "SqlValidatorException"),
        ("SHOW CREATE VIEW is only supported for views, but `t` is a table.", "TableException"),
        ("No Statement Set to submit. 'END' statement", "SqlExecutionException"),
        ("something else", "ValidationException"),
    ],
)
def test_which_exception_says_what(message: str, name: str) -> None:
    assert exception_of(message).rpartition(".")[2] == name


def test_the_innermost_has_the_words_alone_and_the_outermost_all() -> None:
    error = ValidationError("Object 't' not found", position=Position(2, 5), hint="Did you mean 'tt'?")
    assert causes(error) == [
        "org.apache.flink.table.api.ValidationException: Object 't' not found (at line 2, column 5)\n"
        "Did you mean 'tt'?",
        "org.apache.calcite.sql.validate.SqlValidatorException: Object 't' not found",
    ]
    plain = ValidationError("No.")
    assert causes(plain) == ["org.apache.flink.table.api.ValidationException: No."]


@pytest.mark.parametrize(
    "error",
    [
        ValidationError("Object 't' not found", position=Position(2, 5), hint="Did you mean 'tt'?"),
        ValidationError("No.\n\nOf two lines", expected=("a", "b")),
        NotSupportedError("X is not supported", hint="Use Y."),
    ],
)
def test_our_own_client_says_all(error: TidemillError) -> None:
    said = failed(error, "execute the statement").messages[-1]
    place = " (at line 2, column 5)"  # which goes to the end
    shown = str(GatewayError(said, error.code, error.position))
    assert shown.replace(place, "") == str(error).replace(place, "")
    assert shown.endswith(place) == (error.position is not None)
    assert str(GatewayError(said)).startswith(error.message)
