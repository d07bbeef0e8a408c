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
            r"identifier 'carrier-pigeon'(?s:.*)blackhole\ndatagen\ndelta\nfilesystem\niceberg",
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
        (
            FILES | {"sink.parallelism": "0"},
            "source",
            "'0' for key 'sink.parallelism': it must be at least 1",
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
        (
            FILES | {"format": "parquet", "parquet.compression": "lzo"},
            "sink",
            "Unsupported value 'lzo' for key 'parquet.compression'",
        ),
        (
            FILES | {"format": "orc", "orc.compress": "gzip"},
            "sink",
            "Unsupported value 'gzip' for key 'orc.compress'",
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


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"format": "csv", "csv.feild-delimiter": ";"}, "Did you mean 'csv.field-delimiter' by"),
        ({"json.ignore-parse-error": "true"}, "Did you mean 'json.ignore-parse-errors' by"),
        (
            {"format": "debezium-json", "debezium-json.schema-included": "true"},
            "Did you mean 'debezium-json.schema-include' by",
        ),
    ],
)
def test_a_format_has_no_other_options_than_its_own(options: dict[str, str], hint: str) -> None:
    with pytest.raises(ValidationError, match=r"(?s)Unsupported options:\n\n[a-z-]+\.[a-z-]+\n\n") as caught:
        checked(FILES | options)
    assert hint in caught.value.hint


@pytest.mark.parametrize("columnar", ["parquet", "orc"])
def test_options_of_the_libraries_behind_columnar_formats_pass(columnar: str) -> None:
    checked(FILES | {"format": columnar, f"{columnar}.block.size": "1024"})


def test_a_connector_of_flink_that_is_not_there_is_not_a_misspelt_one() -> None:
    with pytest.raises(NotSupportedError, match=r"(?s)'pulsar'.*\nfilesystem\n.*no connector 'pulsar' yet"):
        checked({"connector": "pulsar", "topic": "t", "format": "json"})
    with pytest.raises(ValidationError, match="Did you mean 'filesystem' by 'filesystm'"):
        checked({"connector": "filesystm"})
    with pytest.raises(ValidationError, match=r"(?s)Did you mean 'parquet' by 'parqet'.*canal-json, csv"):
        checked(FILES | {"format": "parqet"})


def test_no_connector_is_said_to_be_missing_that_is_there() -> None:
    assert not registry.NOT_THERE_YET & set(registry.identifiers())


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
