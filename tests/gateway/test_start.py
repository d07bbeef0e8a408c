"""A gateway that is started with options that no session could be opened with."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tidemill.config.option import Configuration
from tidemill.errors import SetupError, ValidationError
from tidemill.gateway.start import House, command

_PLACES = ("users-file", "audit-file", "directory", "store", "tls.certificate-file", "tls.private-file")


@pytest.mark.parametrize(
    ("key", "value"),
    [("tidemill.gateway.dir", "/"), ("sql-gateway.session.idle-timeout", "often")]
    + [(f"tidemill.gateway.{key}", "a\0b") for key in _PLACES],
)
def test_it_does_not_start(capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    mistyped = "sql-gateway.endpoint.rest.prt"
    with pytest.raises(ValidationError, match=key):
        command(Namespace(options={mistyped: "8085", key: value}))
    assert f"Warning: There is no option '{mistyped}'" in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "/below"])
def test_its_directory_is_none(tmp_path: Path, below: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SetupError, match=rf"directory '{file}{below}' cannot be used: .*: '{file}"):
        House(Configuration({"tidemill.gateway.directory": f"{file}{below}"}))
