"""What a token costs, however long it is, and where one that does not end is told of."""

from __future__ import annotations

import tracemalloc

import pytest

from tidemill.sql.lexer import UnclosedError, tokens

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


@pytest.mark.parametrize(
    ("text", "start", "stuck"),
    [
        ("SELECT 'a", (1, 8), (1, 8)),
        ("SELECT 'a''b''c", (1, 8), (1, 14)),
        ("SELECT 1 AS a,\n  'it''s unclosed FROM t", (2, 3), (2, 7)),
        ("SELECT 1,\n 'a''b\n c''d\n e", (2, 2), (3, 4)),
        ("SELECT U&'a''b", (1, 10), (1, 13)),
        ("SELECT _utf8'a''b", (1, 13), (1, 16)),
        ("SELECT 'a' 'b''", (1, 12), (1, 15)),
    ],
)
def test_a_string_that_does_not_end(text: str, start: tuple[int, int], stuck: tuple[int, int]) -> None:
    """It is told where it starts, and the place is Flink's: behind the last doubled quote."""
    with pytest.raises(UnclosedError, match=r"starts at line {}, column {} ".format(*start)) as caught:
        list(tokens(text))
    place = caught.value.position
    assert place is not None
    assert (place.line, place.column) == stuck
