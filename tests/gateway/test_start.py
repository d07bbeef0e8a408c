"""A gateway that is started with options that no session could be opened with."""

from __future__ import annotations

from argparse import Namespace

import pytest

from tidemill.errors import ValidationError
from tidemill.gateway.start import command


@pytest.mark.parametrize(
    ("key", "value"), [("tidemill.gateway.dir", "/"), ("sql-gateway.session.idle-timeout", "often")]
)
def test_it_does_not_start(capsys: pytest.CaptureFixture[str], key: str, value: str) -> None:
    mistyped = "sql-gateway.endpoint.rest.prt"
    with pytest.raises(ValidationError, match=key):
        command(Namespace(options={mistyped: "8085", key: value}))
    assert f"Warning: There is no option '{mistyped}'" in capsys.readouterr().err
