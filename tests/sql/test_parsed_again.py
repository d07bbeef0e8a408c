"""A query that is parsed again is the tree that it was before."""

from __future__ import annotations

import pytest

from tidemill.errors import Position, SqlSyntaxError
from tidemill.sql.parser import parse_statement


def test_a_query_is_parsed_once() -> None:
    text = "SELECT a, COUNT(*) FROM t WHERE b = 'parsed once' GROUP BY a"
    first = parse_statement(text)
    assert parse_statement(text) is first


def test_its_position_counts() -> None:
    text = "SELECT 'somewhere' FROM t"
    here, there = parse_statement(text), parse_statement(text, Position(3, 7))
    assert (here.position.line, there.position.line) == (1, 3)
    assert there is parse_statement(text, Position(3, 7))


def test_errors_are_found_again() -> None:
    for _ in range(2):
        with pytest.raises(SqlSyntaxError) as caught:
            parse_statement("SELECT FROM WHERE")
        assert caught.value.position is not None
