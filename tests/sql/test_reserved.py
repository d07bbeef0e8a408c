from __future__ import annotations

import pytest
from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql.parser import parse_expression, parse_statement
from tidemill.sql.reserved import BARE_COLUMNS, BARE_FUNCTIONS, CALLABLE, RESERVED


def test_the_callable_words_are_reserved() -> None:
    assert CALLABLE <= RESERVED
    assert BARE_FUNCTIONS | BARE_COLUMNS <= RESERVED


@pytest.mark.parametrize("word", ["name", "type", "data", "ts", "status", "level", "week", "quarter"])
def test_common_names_are_free(word: str) -> None:
    assert parse_expression(word).name == word


@pytest.mark.parametrize("word", sorted(BARE_COLUMNS))
def test_a_word_of_the_standard_that_flink_has_no_function_for_is_a_column(word: str) -> None:
    assert parse_expression(word.lower()) == exp.column(word.lower())
    assert parse_expression(f"t.{word}") == exp.column(word, table="t")
    with pytest.raises(SqlSyntaxError):
        parse_statement(f"SELECT 1 AS {word}")


@pytest.mark.parametrize("name", ["EXPR$0", "$$t", "a$b", "$1", "_$"])
def test_a_dollar_is_part_of_a_name(name: str) -> None:
    assert isinstance(parse_expression(name), exp.Column)
    assert parse_expression(name).name == name


@pytest.mark.parametrize(
    "word", sorted(RESERVED - BARE_FUNCTIONS - BARE_COLUMNS - {"TRUE", "FALSE", "NULL", "UNKNOWN"})
)
def test_a_reserved_word_is_a_name_only_in_backquotes(word: str) -> None:
    assert parse_expression(f"`{word}`").name == word
    with pytest.raises(SqlSyntaxError):
        parse_expression(word)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT id AS order FROM t", "ORDER is a reserved word; as a name it is written `order`"),
        ("SELECT value FROM t", "VALUE is a reserved word; as a name it is written `value`"),
        ("SELECT t.VALUE FROM t", "VALUE is a reserved word; as a name it is written `VALUE`"),
        ("SELECT * FROM max", "MAX is a reserved word; as a name it is written `max`"),
        ("CREATE TABLE t (user INT)", "USER is a reserved word; as a name it is written `user`"),
        ("SELECT FROM t", ""),
        ("SELECT * FROM WHERE TRUE", ""),
        ('SELECT "id" FROM t', "Names are quoted with back-quotes: `id`; strings with '...'"),
        ('SELECT "', "Names are quoted with back-quotes: `name`; strings with '...'"),
        ("SELECT ~1", ""),
    ],
)
def test_a_hint_says_how_a_name_is_written(sql: str, hint: str) -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse_statement(sql)
    assert raised.value.hint == hint


def test_units_are_listed_once() -> None:
    with pytest.raises(SqlSyntaxError) as raised:
        parse_expression("INTERVAL '1' PARSEC")
    units = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
    assert raised.value.expected == units
