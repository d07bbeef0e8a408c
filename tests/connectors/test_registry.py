"""Finding connectors and formats, and what is said about options that do not fit."""

from __future__ import annotations

import pytest

from tests.connectors.sources import table
from tidemill.connectors import registry
from tidemill.connectors.worker_errors import WorkerError, find_error
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.types import logical as t

FILES = {"connector": "filesystem", "path": "/tmp/x", "format": "json"}


def checked(
    options: dict[str, str], *, role: str = "source", columns: dict[str, t.LogicalType] | None = None
) -> None:
    declared = table(columns or {"a": t.INT}, options)
    registry.validate(declared, options, role=role)


@pytest.mark.parametrize(
    ("options", "role", "message"),
    [
        ({}, "source", "'connector'"),
        (
            {"connector": "carrier-pigeon"},
            "source",
            r"identifier 'carrier-pigeon'(?s:.*)blackhole\ndatagen\nfilesystem",
        ),
        (
            {"connector": "blackhole", "colour": "red"},
            "sink",
            r"options found for 'blackhole'(?s:.*)colour(?s:.*)property",
        ),
        ({"connector": "filesystem", "path": "x"}, "source", r"required options are missing(?s:.*)format"),
        ({"connector": "filesystem", "format": "csv"}, "source", r"required options are missing(?s:.*)path"),
        (FILES | {"format": "morse"}, "source", "format factory for identifier 'morse'(?s:.*)debezium-json"),
        (FILES | {"nope": "1"}, "source", r"options found for 'filesystem'(?s:.*)nope"),
        (
            FILES | {"json.ignore-parse-errors": "maybe"},
            "source",
            "'maybe' for key 'json.ignore-parse-errors'",
        ),
        (FILES | {"source.monitor-interval": "often"}, "source", "'often' for key 'source.monitor-interval'"),
        (
            FILES | {"json.timestamp-format.standard": "X"},
            "source",
            "Unsupported value 'X' for timestamp-format",
        ),
        (
            FILES | {"json.ignore-parse-errors": "true", "json.fail-on-missing-field": "true"},
            "source",
            "shouldn't both be true",
        ),
        (FILES | {"format": "csv", "csv.escape-character": "ab"}, "source", "single character, but was: ab"),
    ],
)
def test_messages(options: dict[str, str], role: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        checked(options, role=role)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"connector": "filesystem", "pth": "x", "format": "csv"}, "Did you mean 'path' by 'pth'?"),
        ({"connector": "jdbc", "ulr": "x", "table-name": "t"}, "Did you mean 'url' by 'ulr'?"),
        (FILES | {"source.monitor.interval": "1 s"}, "Did you mean 'source.monitor-interval' by"),
    ],
)
def test_misspelt_keys_are_asked_about(options: dict[str, str], hint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        checked(options)
    assert hint in caught.value.hint
    assert "table 'c.d.t'" in caught.value.hint


def test_options_of_the_format_may_be_unknown() -> None:
    checked(FILES | {"json.nope": "true"})


def test_roles() -> None:
    with pytest.raises(NotSupportedError, match="'blackhole' cannot be used as a source"):
        checked({"connector": "blackhole"})
    with pytest.raises(NotSupportedError, match="'datagen' cannot be used as a sink"):
        checked({"connector": "datagen"}, role="sink")


def test_types_that_a_format_lacks() -> None:
    numbered = t.MapType(key=t.INT, value=t.INT)
    with pytest.raises(NotSupportedError, match="non-string as key type"):
        checked(FILES, columns={"a": numbered})
    with pytest.raises(ValidationError, match="Unsupported type 'MAP"):
        checked(FILES | {"format": "csv"}, columns={"a": numbered})
    with pytest.raises(ValidationError, match="single physical column"):
        checked(FILES | {"format": "raw"}, columns={"a": t.INT, "b": t.INT})


def test_every_entry_point_loads() -> None:
    for identifier in registry.identifiers():
        assert registry.connector({"connector": identifier}).identifier == identifier


def test_errors_survive_the_way_out_of_a_worker() -> None:
    error = ConnectorError('line\n"quoted" } tidemill', hint="do this")
    found = find_error(f"Traceback ...\nWorkerError: {WorkerError(error)}\n at java")
    assert isinstance(found, ConnectorError)
    assert (found.message, found.hint) == (error.message, "do this")
    assert find_error("something else") is None
