"""Nested syntax: the work grows as the text does, and there is a limit with a position."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tidemill.errors import NotSupportedError
from tidemill.sql.grammar.trees import DEEPEST
from tidemill.sql.parser import parse_statement

FORMS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"SELECT {'(' * n}1{')' * n}",
    "CASE": lambda n: f"SELECT {'CASE WHEN a THEN ' * n}1{' END' * n}",
    "CASE with an operand": lambda n: f"SELECT {'CASE a WHEN 1 THEN ' * n}1{' END' * n}",
    "calls": lambda n: f"SELECT {'ABS(' * n}1{')' * n}",
    "arrays": lambda n: f"SELECT {'ARRAY[' * n}1{']' * n}",
    "queries in FROM": lambda n: f"SELECT * FROM {'(SELECT * FROM ' * n}t{')' * n}",
    "scalar queries": lambda n: f"SELECT {'(SELECT ' * n}1{')' * n}",
    "queries in parentheses": lambda n: f"SELECT * FROM {'(' * n}SELECT 1{')' * n}",
    "joins": lambda n: f"SELECT * FROM {'(' * n}t{' JOIN u ON TRUE)' * n}",
    "IN": lambda n: f"SELECT a IN ({', '.join(map(str, range(n)))})",
    "AND": lambda n: f"SELECT {' AND '.join(['a'] * n)}",
}


def calls(text: str) -> int:
    """How often a function is called while the text is parsed."""
    counted = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        parse_statement(text)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("form", FORMS)
def test_twice_the_depth_is_twice_the_work(form: str) -> None:
    assert calls(FORMS[form](60)) < 2.3 * calls(FORMS[form](30))


@pytest.mark.thorough
def test_the_deepest_statement_is_parsed() -> None:
    levels = DEEPEST - 2
    tree = parse_statement(f"SELECT {'(' * levels}1{')' * levels}")
    assert tree.text.count("(") == levels


@pytest.mark.parametrize(
    ("opens", "column"),
    [("(", 5_007), pytest.param("CASE WHEN a THEN ", 84_984, marks=pytest.mark.thorough)],
)
def test_what_is_deeper_is_refused_with_its_position(opens: str, column: int) -> None:
    with pytest.raises(NotSupportedError, match="More than 5,000 nested") as refused:
        parse_statement("SELECT " + opens * 6_000)
    assert refused.value.position is not None
    assert (refused.value.position.line, refused.value.position.column) == (1, column)
