from __future__ import annotations

import pytest

from tidemill.errors import SqlSyntaxError
from tidemill.sql.parser import parse_expression, parse_statement
from tidemill.sql.reserved import BARE_FUNCTIONS, CALLABLE, RESERVED


def test_the_callable_words_are_reserved() -> None:
    assert CALLABLE <= RESERVED
    assert BARE_FUNCTIONS <= RESERVED


@pytest.mark.parametrize("word", ["name", "type", "data", "ts", "status", "level", "week", "quarter"])
def test_common_names_are_free(word: str) -> None:
    assert parse_expression(word).name == word


@pytest.mark.parametrize("word", sorted(RESERVED - BARE_FUNCTIONS - {"TRUE", "FALSE", "NULL", "UNKNOWN"}))
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
