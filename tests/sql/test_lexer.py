"""What a token costs, however long it is."""

from __future__ import annotations

import tracemalloc

import pytest

from tidemill.sql.lexer import tokens

_LENGTH = 100_000


@pytest.mark.parametrize(
    "text",
    [f"'{'x' * _LENGTH}'", f"'{chr(39) * _LENGTH}'", f"`{'y' * _LENGTH}`", f"U&'{'z' * _LENGTH}'"],
    ids=["a string", "quotes", "a quoted name", "an escaped string"],
)
def test_a_long_text_costs_a_few_bytes_a_character(text: str) -> None:
    tracemalloc.start()
    try:
        assert [token.text for token in tokens(text)] == [text, "<EOF>"]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20 * len(text)
