"""Variables in scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.client.script import read_script
from tidemill.errors import ConnectorError


def test_variables_are_put_in_and_those_that_are_not_set_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "q.sql"
    script.write_text("SELECT '${DIR}', '${A}', '${OUTPUT}', '${OUTPUT}', '${1}', '$x'")
    text = read_script(str(script), {"A": "a"})
    assert text == f"SELECT '{tmp_path}', 'a', '${{OUTPUT}}', '${{OUTPUT}}', '${{1}}', '$x'"
    warning = capsys.readouterr().err
    assert warning.splitlines() == [
        f"Warning: {script} has ${{OUTPUT}}, which is not set; -V OUTPUT=... sets it."
    ]


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="No such file"):
        read_script(str(tmp_path / "none.sql"), {})
