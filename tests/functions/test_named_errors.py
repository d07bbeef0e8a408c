"""The name of an expression gets into the errors of its text, and nowhere else."""

from __future__ import annotations

import pytest

from tidemill.functions.named_errors import length, named
from tidemill.functions.sharing import share


def give(name: str, sql: str) -> str:
    return named(sql, lambda: name)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("IF(a, b, raise_error('no'))", "IF(a, b, raise_error('x failed: ' || 'no'))"),
        (
            "coalesce(raise_error('a'), raise_error(concat('b', c)))",
            "coalesce(raise_error('x failed: ' || 'a'), raise_error('x failed: ' || concat('b', c)))",
        ),
        # What strings and quoted names hold is data.
        ("concat('raise_error(', `raise_error(`)", "concat('raise_error(', `raise_error(`)"),
        (
            r"f('it\'s raise_error(', raise_error('n'))",
            r"f('it\'s raise_error(', raise_error('x failed: ' || 'n'))",
        ),
    ],
)
def test_named(sql: str, expected: str) -> None:
    assert give("x", sql) == expected


def test_the_innermost_expression_keeps_its_name() -> None:
    inner = give("it's `b` (c)", "f(raise_error('b'))")
    outer = give("outer", f"g({inner}, raise_error('a'))")
    assert outer == f"g({inner}, raise_error('outer failed: ' || 'a'))"


def test_a_text_that_cannot_fail_asks_for_no_name() -> None:
    def no_name() -> str:
        raise AssertionError

    named_once = give("x", "raise_error('a')")
    for sql in ("a + b", named_once):
        assert named(sql, no_name) is sql


def test_a_long_name_is_cut() -> None:
    assert give("y" * 300, "raise_error('no')") == f"raise_error('{'y' * 200}... failed: ' || 'no')"


def test_a_name_does_not_decide_how_a_text_is_shared() -> None:
    plain = "CASE WHEN b = 0 THEN raise_error('/ by zero') ELSE a END"
    name = give("n" * 190, plain)
    assert length(name) == length(plain) == len(plain)
    assert share(name, lambda v: f"{v} + {v}") == f"{name} + {name}"
