"""Which types hold all values of which."""

from __future__ import annotations

import pytest

from tidemill.types.widening import family_of, is_wider, kind_of


@pytest.mark.parametrize(
    ("narrow", "wide", "kind", "family"),
    [
        ("INT", "BIGINT NOT NULL", True, True),
        ("FLOAT", "DOUBLE", False, True),
        ("CHAR(3)", "VARCHAR(3)", True, True),
        ("CHAR(3) NOT NULL", "STRING", True, True),
        ("VARCHAR(3)", "VARCHAR(9)", True, True),
        ("BINARY(3)", "BYTES", True, True),
        ("DECIMAL(5, 2)", "DECIMAL(9, 2)", True, True),
        ("DECIMAL(5, 2)", "DECIMAL(7, 4)", False, True),
    ],
)
def test_wider(narrow: str, wide: str, kind: bool, family: bool) -> None:
    assert is_wider(narrow, narrow)
    assert is_wider(narrow, wide)
    assert not is_wider(wide, narrow)
    assert (kind_of(narrow) == kind_of(wide)) is kind
    assert (family_of(narrow) == family_of(wide)) is family


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CHAR(3)", "CHAR(5)"),
        ("VARCHAR(3)", "CHAR(5)"),
        ("CHAR(3)", "VARCHAR(2)"),
        ("CHAR(3)", "VARBINARY(5)"),
        ("DECIMAL(5, 2)", "DECIMAL(6, 4)"),
        ("INT", "DECIMAL(10, 0)"),
        ("INT", "DOUBLE"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    ],
)
def test_not_wider(one: str, other: str) -> None:
    assert not is_wider(one, other)
