from __future__ import annotations

import pytest

from tidemill.errors import SqlSyntaxError
from tidemill.sql.parser import parse_expression
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
