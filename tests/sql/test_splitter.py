from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.errors import Position, SqlSyntaxError
from tidemill.sql.parser import parse_script
from tidemill.sql.splitter import Piece, split


def texts(script: str) -> list[str]:
    return [piece.text for piece in split(script)]


def test_semicolons_in_strings_names_and_comments_do_not_split() -> None:
    script = "SELECT 'a;''b' -- c; d\n, `x;y` /* ; */ ;SELECT 2"
    assert texts(script) == ["SELECT 'a;''b' -- c; d\n, `x;y`", "SELECT 2"]


def test_positions_are_those_of_the_first_word_in_the_script() -> None:
    script = "-- header\n\n  SELECT 1;\r\n\tSELECT 2 ; SELECT 3"
    assert [piece.position for piece in split(script)] == [Position(3, 3), Position(4, 2), Position(4, 13)]


def test_hints_stay_in_the_statement() -> None:
    assert texts("SELECT * FROM t /*+ OPTIONS('a;'='b') */; SELECT 1") == [
        "SELECT * FROM t /*+ OPTIONS('a;'='b') */",
        "SELECT 1",
    ]


@pytest.mark.parametrize(
    "opening",
    [
        "BEGIN STATEMENT SET;",
        "EXECUTE STATEMENT SET BEGIN",
        "EXPLAIN STATEMENT SET BEGIN",
        "explain plan for statement set begin",
        "EXPLAIN CHANGELOG_MODE, PLAN_ADVICE STATEMENT SET BEGIN",
        "EXPLAIN EXECUTE STATEMENT SET BEGIN",
    ],
)
def test_a_statement_set_is_one_statement(opening: str) -> None:
    block = f"{opening} INSERT INTO a SELECT 1; INSERT INTO b SELECT CASE WHEN x THEN 1 END FROM c; END"
    assert texts(f"{block}; SELECT 1") == [block, "SELECT 1"]


def test_empty_statements_and_comments_give_nothing() -> None:
    assert texts(";; -- a\n ; /* b */ ;") == []


@pytest.mark.parametrize(
    ("script", "position"),
    [("SELECT 1;\nSELECT 'abc", Position(2, 8)), ("SELECT `a", Position(1, 8)), ("/* x", Position(1, 1))],
)
def test_what_does_not_end_is_an_error_where_it_starts(script: str, position: Position) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        list(split(script))
    assert caught.value.position == position


def test_a_later_error_shows_only_after_the_statements_before_it() -> None:
    statements = parse_script("SELECT 1; SELECT FROM; SELECT 'open")
    assert next(statements).text == "SELECT 1"
    with pytest.raises(SqlSyntaxError) as caught:
        next(statements)
    assert caught.value.position == Position(1, 18)


@given(st.lists(st.sampled_from(["SELECT 1", "SELECT ';'", "VALUES (`a;`)", "SET 'k' = 'v;--'"]), max_size=6))
def test_joined_statements_split_into_themselves(statements: list[str]) -> None:
    assert list(split(" ;\n".join(statements))) == [
        Piece(text, Position(line, 1)) for line, text in enumerate(statements, start=1)
    ]
