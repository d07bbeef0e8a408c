"""Every golden script parses, except those whose point is that they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemill.errors import SqlSyntaxError
from tidemill.sql.parser import parse_script

GOLDENS = Path(__file__).parents[2].parent / "shared" / "goldens"
SCRIPTS = sorted(GOLDENS.glob("*/*.sql"))
PARSER_ERRORS = ("sql.parser.impl.ParseException", "SqlValidateException")


def last_error(script: Path) -> str:
    answer = json.loads(script.with_suffix(".json").read_text())
    return str(answer["statements"][-1].get("error", {}).get("root", ""))


@pytest.mark.skipif(not SCRIPTS, reason="the golden scripts are not beside this checkout")
def test_all_scripts_parse_but_those_with_syntax_errors() -> None:
    failed = {}
    for script in SCRIPTS:
        try:
            list(parse_script(script.read_text()))
        except SqlSyntaxError as error:
            failed[script] = error
    assert {s for s in SCRIPTS if any(e in last_error(s) for e in PARSER_ERRORS)} == set(failed)
    assert all(error.position is not None for error in failed.values())
