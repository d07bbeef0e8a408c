"""Expressions are printed back as Flink prints them."""

from __future__ import annotations

import pytest

from tidemill.session.schema.expression_text import canonical


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("id+1", "`id` + 1"),
        ("ts - interval '5' second", "`ts` - INTERVAL '5' SECOND"),
        ("ts - interval '1-2' years to months", "`ts` - INTERVAL '1-2' YEAR TO MONTH"),
        ("cast(ts as timestamp(3))", "CAST(`ts` AS TIMESTAMP(3))"),
        ("TO_TIMESTAMP( FROM_UNIXTIME(t/1000) )", "TO_TIMESTAMP(FROM_UNIXTIME(`t` / 1000))"),
        ("`a b`.c", "`a b`.`c`"),
        ("case when x in (1,2) then 'a' else g end", "CASE WHEN `x` IN (1, 2) THEN 'a' ELSE `g` END"),
        ("-x * -1", "-`x` * -1"),
    ],
)
def test_canonical(written: str, printed: str) -> None:
    assert canonical(written) == printed
