"""Hints for functions that do not exist."""

from __future__ import annotations

import re

import pytest

from tidemill.functions import registry
from tidemill.plan.binder.expressions.function_hints import ELSEWHERE, function_hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("summ", "Did you mean 'SUM'?"),
        ("ROWNUMBER", "Did you mean 'ROW_NUMBER'?"),
        ("JSON_VALU", "Did you mean 'JSON_VALUE'?"),
        ("string_agg", "In Flink SQL: LISTAGG(x, separator)."),
        ("LEN", "In Flink SQL: CHAR_LENGTH(text)."),
        ("MD4", ""),
        ("FOO", ""),
        ("CRC32", ""),
        ("MYFUNC", ""),
    ],
)
def test_what_is_said(name: str, hint: str) -> None:
    assert function_hint(name, registry.names()) == hint


def test_what_flink_says_exists_and_what_others_say_does_not() -> None:
    known = set(registry.names())
    assert not known & set(ELSEWHERE)
    called = {name for text in ELSEWHERE.values() for name in re.findall(r"([A-Z_]+)\(", text)}
    assert called - known == {"CAST", "TRY_CAST", "DECIMAL", "UNNEST"}
