"""The grammar against Flink 2.3's own parser: recorded answers to some five hundred texts.

``error`` is the parser's message, '' where the text parsed (whatever became of it later).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tidemill.errors import NotSupportedError, SqlSyntaxError, TidemillError, ValidationError
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

RECORDED = json.loads((Path(__file__).parent / "recorded_syntax.json").read_text())
ACCEPTED = [case["sql"] for case in RECORDED if not case["error"]]
REFUSED = [(case["sql"], case["error"]) for case in RECORDED if case["error"]]
POSITION = re.compile(r"line \d+, column \d+")

# Flink's parser gives these to its validator, which refuses them; or Tidemill does not have them.
REFUSED_HERE: dict[str, type[TidemillError]] = {
    "'a' RLIKE": SqlSyntaxError,
    "'a' ILIKE": SqlSyntaxError,
    "'a' 'b'": SqlSyntaxError,
    "x'0a' 'ff'": SqlSyntaxError,
    "PERIOD(": SqlSyntaxError,
    "USING utf8": SqlSyntaxError,
    "DATE_TRUNC(": SqlSyntaxError,
    "NEXT VALUE": SqlSyntaxError,
    "NEW f": SqlSyntaxError,
    "SPECIFIC f": SqlSyntaxError,
    "'abc'.x": SqlSyntaxError,
    "ERROR ON EMPTY ERROR ON EMPTY": SqlSyntaxError,
    "SAFE_CAST": SqlSyntaxError,
    "{fn": SqlSyntaxError,
    "{d": SqlSyntaxError,
    "SELECT ?": SqlSyntaxError,
    "/* abc": SqlSyntaxError,
    "LIMIT 1.5": SqlSyntaxError,
    "DESCRIBE TABLE": SqlSyntaxError,
    "QUIT": SqlSyntaxError,
    "HELP": SqlSyntaxError,
    "(a.b INT)": SqlSyntaxError,
    "MAP['a'],": ValidationError,
    "MAP['a']": ValidationError,
    "FOO)": ValidationError,
    "TO DAYS": ValidationError,
    "(DAYS,": ValidationError,
    "(FOO FROM": ValidationError,
    "(YEARS FROM": ValidationError,
    "DECIMAL(5, 7)": ValidationError,
    "DECIMAL(0, 0)": ValidationError,
    "DECIMAL(40, 39)": ValidationError,
    "default_database.t.x": ValidationError,
    "REAL": NotSupportedError,
    "VARIANT": NotSupportedError,
    "STRUCTURED": NotSupportedError,
    "RAW(": NotSupportedError,
    "TABLESAMPLE": NotSupportedError,
}
ACCEPTED_HERE = (
    "MERGE INTO",
    "LIMIT 1) x",
    "CUBE((a), ())",
    "INT ARRAY ARRAY",
    "FILTER (WHERE TRUE) FROM (VALUES ('1'))",
)
# Where Flink's parser looks several tokens ahead it names the first of them.
ELSEWHERE = (
    "LEFT SEMI", "JSON_OBJECT('a', 1)", "`.UPPER", "(t.a).*", "DAY TO MONTH", "`abc", "t.day", "SHOW FOO",
    "DESCRIBE FUNCTION", "SET 'a' 'b'", "t.row", "a.value", "ROLLUP a",
    "CONVERT(",
)  # fmt: skip


def parse(script: str) -> None:
    for piece in split(script):
        parse_statement(piece.text)


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_flink_accepts_is_accepted(sql: str) -> None:
    wanted = next((error for part, error in REFUSED_HERE.items() if part in sql), None)
    if wanted is None:
        parse(sql)
        return
    with pytest.raises(wanted):
        parse(sql)


@pytest.mark.parametrize(("sql", "error"), REFUSED)
def test_what_flink_refuses_is_refused_at_the_same_place(sql: str, error: str) -> None:
    if any(part in sql for part in ACCEPTED_HERE):
        return parse(sql)
    with pytest.raises((SqlSyntaxError, NotSupportedError)) as caught:
        parse(sql)
    position = POSITION.search(error)
    if position is not None and not any(part in sql for part in ELSEWHERE):
        assert str(caught.value.position) == position.group()
    return None
